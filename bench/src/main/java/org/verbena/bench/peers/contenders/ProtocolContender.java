package org.verbena.bench.peers.contenders;

import io.netty.buffer.ByteBuf;
import io.netty.channel.IoEventLoop;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.bench.Endpoints;
import org.verbena.bench.MessageEvents;
import org.verbena.bench.MessagePools;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.RdmaProvider;

/**
 * Verbena's message protocol on a provider's endpoints, without the channel: what {@link VerbenaContender} is above.
 * Messages are sent, or written into claims where these are long enough and there is room.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class ProtocolContender implements Contender {
    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS.withMaxMessageBytes(17 << 20);

    private final boolean claims;

    /**
     * Creates it.
     *
     * @param claims whether messages are written into claims
     */
    public ProtocolContender(boolean claims) {
        this.claims = claims;
    }

    /** Claims room for a message. */
    private static boolean tryClaim(MessageConnection connection, int bytes) {
        MessageClaims claims = connection.claims();
        return bytes <= claims.maxBytes() && claims.tryClaim(bytes) == MessageClaims.Outcome.CLAIMED;
    }

    @Override
    public List<String> jvmFlags() {
        return new VerbenaContender(false).jvmFlags();
    }

    @Override
    public Server startServer(Path scratch) throws Exception {
        RdmaProvider provider = Endpoints.provider(Place.provider());
        IoEventLoop loop = Endpoints.loop(provider);
        MessagePools pools = new MessagePools(loop);
        Endpoints.Accepting accepting = Endpoints.accept(
                provider,
                loop,
                Place.address(0),
                Endpoints.optionsFor(OPTIONS),
                () -> new MessageConnection(Role.ACCEPTOR, OPTIONS, pools::of, new Echo(claims)));
        return new Server() {
            @Override
            public String address() {
                return Integer.toString(accepting.address().getPort());
            }

            @Override
            public void close() {
                loop.parent().shutdownGracefully();
            }
        };
    }

    private static final class Echo extends MessageEvents {
        private final boolean claims;

        private final OperationCallback outcome = (context, cause) -> {
            if (cause != null) {
                fail(cause);
            }
        };

        Echo(boolean claims) {
            this.claims = claims;
        }

        @Override
        public void onMessage(MessageConnection connection, ByteBuf message) {
            if (claims && tryClaim(connection, message.readableBytes())) {
                connection.claims().buffer().writeBytes(message);
                message.release();
                connection.claims().commit();
            } else {
                connection.send(message, outcome, null);
            }
        }

        @Override
        protected void fail(Throwable cause) {
            cause.printStackTrace(); // to the log
        }
    }

    @Override
    public Client connect(String address) throws Exception {
        RdmaProvider provider = Endpoints.provider(Place.provider());
        IoEventLoop loop = Endpoints.loop(provider);
        Events events = new Events(new MessagePools(loop), claims);
        provider.connect(
                loop,
                Place.address(Integer.parseInt(address)),
                Endpoints.optionsFor(OPTIONS),
                new MessageConnection(Role.INITIATOR, OPTIONS, events.pools::of, events));
        MessageConnection connection = events.active.get(Endpoints.SECONDS_TO_CONNECT, TimeUnit.SECONDS);
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                CompletableFuture<Void> done = new CompletableFuture<>();
                loop.execute(() -> events.start(connection, load, done));
                done.get();
            }

            @Override
            public void close() {
                loop.parent().shutdownGracefully();
            }
        };
    }

    /** All of it runs in the event loop. */
    private static final class Events extends MessageEvents {
        private final MessagePools pools;
        private final boolean claims;
        private final CompletableFuture<MessageConnection> active = new CompletableFuture<>();
        private @Nullable CompletableFuture<Void> done;
        private Load load;

        private final OperationCallback outcome = (context, cause) -> {
            if (cause != null) {
                fail(cause);
            }
        };

        Events(MessagePools pools, boolean claims) {
            this.pools = pools;
            this.claims = claims;
        }

        void start(MessageConnection connection, Load next, CompletableFuture<Void> whenDone) {
            load = next;
            done = whenDone;
            send(connection);
            connection.flush();
        }

        private void send(MessageConnection connection) {
            for (long sequence; (sequence = load.next()) >= 0; ) {
                if (claims && tryClaim(connection, load.size)) {
                    connection.claims().buffer().writeLong(sequence).writeBytes(load.payload, 8, load.size - 8);
                    connection.claims().commit();
                    continue;
                }
                ByteBuf message = pools.message(load.size);
                message.writeLong(sequence).writeBytes(load.payload, 8, load.size - 8);
                connection.send(message, outcome, null);
            }
        }

        @Override
        public void onActive(MessageConnection connection, Negotiated negotiated) {
            active.complete(connection);
        }

        @Override
        public void onMessage(MessageConnection connection, ByteBuf message) {
            try {
                load.echoed(
                        message.getLong(message.readerIndex()),
                        message.readableBytes(),
                        message.getByte(message.writerIndex() - 1));
            } finally {
                message.release();
            }
            send(connection);
            if (load.finished()) {
                done.complete(null);
            }
        }

        @Override
        protected void fail(Throwable cause) {
            active.completeExceptionally(cause);
            if (done != null) {
                done.completeExceptionally(cause);
            }
        }
    }
}
