package org.verbena.bench.stack;

import io.netty.channel.IoEventLoop;
import java.lang.foreign.Arena;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.bench.Endpoints;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** A provider's endpoints, without the protocol. */
@SuppressWarnings("NullAway.Init") // opened before anything else
final class EndpointLayer implements Layer {
    /** Receives of an end, each with a slot of its own. */
    private static final int RECEIVES = 128;

    private static final EndpointOptions OPTIONS = EndpointOptions.DEFAULTS.with(o -> o.receiveDepth = RECEIVES);

    private final String provider;
    private IoEventLoop loop;
    private End client;

    EndpointLayer(String provider) {
        this.provider = provider;
    }

    @Override
    public void open() throws Exception {
        client = new End();
        RdmaProvider known = Endpoints.provider(provider);
        loop = Endpoints.loop(known);
        Place.connect(known, loop, OPTIONS, client, new End());
        client.connected.get(Endpoints.SECONDS_TO_CONNECT, TimeUnit.SECONDS);
    }

    @Override
    public void start(Series series) {
        loop.execute(() -> client.begin(series));
    }

    /** Sends back what it receives, out of the same slot, and receives into that again when it has been sent. */
    private static final class End implements EndpointHandler {
        private final CompletableFuture<Endpoint> connected = new CompletableFuture<>();
        private final WorkRequest request = new WorkRequest(1);
        private final ScatterGatherList list = new ScatterGatherList(1);
        private RegisteredMemory memory;
        private @Nullable Series series;

        @Override
        public void onPrepared(Endpoint endpoint) {
            memory = endpoint.memoryDomain()
                    .register(Arena.global().allocate(2L * RECEIVES * MESSAGE_BYTES, 64), Access.LOCAL_WRITE);
            for (int i = 0; i < RECEIVES; i++) {
                receive(endpoint, i);
            }
        }

        @Override
        public void onConnected(Endpoint endpoint, byte[] privateData) {
            connected.complete(endpoint);
        }

        void begin(Series next) {
            series = next;
            next.begin();
            Endpoint endpoint = connected.join();
            for (int i = 0; i < next.window; i++) {
                send(endpoint, RECEIVES + i);
            }
            endpoint.flush();
        }

        private void send(Endpoint endpoint, long slot) {
            request.asSend(slot, 0).buffers().add(memory, slot * MESSAGE_BYTES, MESSAGE_BYTES);
            if (!endpoint.post(request)) {
                throw new IllegalStateException("the send queue is full");
            }
        }

        private void receive(Endpoint endpoint, long slot) {
            if (slot < RECEIVES
                    && !endpoint.postReceive(slot, list.clear().add(memory, slot * MESSAGE_BYTES, MESSAGE_BYTES))) {
                throw new IllegalStateException("the receive queue is full");
            }
        }

        @Override
        public void onReceiveCompletion(
                Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
            Series current = series;
            if (status != WorkStatus.SUCCESS) {
                return;
            }
            if (current == null || current.echoed()) {
                send(endpoint, workId);
            } else {
                receive(endpoint, workId);
            }
        }

        @Override
        public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
            if (status == WorkStatus.SUCCESS) {
                receive(endpoint, workId);
            }
        }

        @Override
        public void onCompletionsHandled(Endpoint endpoint) {
            endpoint.flush();
        }

        @Override
        public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
            Throwable why = cause == null ? new IllegalStateException("disconnected") : cause;
            connected.completeExceptionally(why);
            Series current = series;
            if (current != null) {
                current.fail(why);
            }
        }
    }
}
