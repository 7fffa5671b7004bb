package org.verbena.bench.stack;

import io.netty.buffer.ByteBuf;
import io.netty.channel.DefaultEventLoop;
import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.bench.Endpoints;
import org.verbena.bench.MessageEvents;
import org.verbena.bench.MessagePools;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.RdmaProvider;

/** The message protocol on a provider's endpoints, or on a pair of them in memory, without the channel. */
@SuppressWarnings("NullAway.Init") // opened before anything else
final class ProtocolLayer implements Layer {
    /** The provider of endpoints in memory, which is none. */
    static final String MEMORY = "memory";

    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS;

    private final String provider;
    private final CompletableFuture<MessageConnection> active = new CompletableFuture<>();
    private EventLoop loop;
    private @Nullable MemoryEndpoint memory;
    private MessagePools pools;
    private @Nullable Series series;

    private final OperationCallback outcome = (context, cause) -> {
        if (cause != null) {
            fail(cause);
        }
    };

    ProtocolLayer(String provider) {
        this.provider = provider;
    }

    @Override
    public void open() throws Exception {
        MessageConnection client = new MessageConnection(Role.INITIATOR, OPTIONS, this::buffersOf, new Client());
        MessageConnection server = new MessageConnection(Role.ACCEPTOR, OPTIONS, this::buffersOf, new Server());
        if (provider.equals(MEMORY)) {
            loop = new DefaultEventLoop();
            MemoryEndpoint pair = MemoryEndpoint.pair(client, server);
            memory = pair;
            pools = new MessagePools(loop);
            loop.submit(() -> {
                        pair.connect(PrivateData.of(OPTIONS));
                        pair.settle();
                    })
                    .get();
        } else {
            RdmaProvider known = Endpoints.provider(provider);
            IoEventLoop ofProvider = Endpoints.loop(known);
            loop = ofProvider;
            pools = new MessagePools(loop);
            Place.connect(known, ofProvider, Endpoints.optionsFor(OPTIONS), client, server);
        }
        active.get(Endpoints.SECONDS_TO_CONNECT, TimeUnit.SECONDS);
    }

    /** Returns the buffers of both ends, on their loop. */
    private MessageBuffers buffersOf(MemoryDomain domain) {
        return pools.of(domain);
    }

    private void fail(Throwable cause) {
        active.completeExceptionally(cause);
        Series current = series;
        if (current != null) {
            current.fail(cause);
        }
    }

    @Override
    public void start(Series next) {
        loop.execute(() -> {
            MessageConnection client = active.join();
            series = next;
            next.begin();
            for (int i = 0; i < next.window; i++) {
                send(client);
            }
            client.flush();
            MemoryEndpoint inMemory = memory;
            if (inMemory != null) {
                inMemory.settle(); // until the series is over
            }
        });
    }

    private void send(MessageConnection connection) {
        ByteBuf message = pools.message(MESSAGE_BYTES);
        message.writerIndex(MESSAGE_BYTES);
        connection.send(message, outcome, null);
    }

    private final class Client extends Events {
        @Override
        public void onActive(MessageConnection connection, Negotiated negotiated) {
            active.complete(connection);
        }

        @Override
        public void onMessage(MessageConnection connection, ByteBuf message) {
            message.release();
            Series current = series;
            if (current != null && current.echoed()) {
                send(connection);
            }
        }
    }

    private final class Server extends Events {
        @Override
        public void onMessage(MessageConnection connection, ByteBuf message) {
            connection.send(message, outcome, null);
        }
    }

    private abstract class Events extends MessageEvents {
        @Override
        protected void fail(Throwable cause) {
            ProtocolLayer.this.fail(cause);
        }
    }
}
