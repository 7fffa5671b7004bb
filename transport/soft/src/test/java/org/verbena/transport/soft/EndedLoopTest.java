package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;

/** A connection is accepted for an event loop that has ended: both ends learn of it. */
@Timeout(240)
class EndedLoopTest {

    /** Only waits for the end. */
    private static final class Ending implements EndpointHandler {
        private final CompletableFuture<@Nullable Throwable> end = new CompletableFuture<>();
        private final AtomicInteger ends = new AtomicInteger();

        @Override
        public void onPrepared(Endpoint endpoint) {}

        @Override
        public void onConnected(Endpoint endpoint, byte[] privateData) {}

        @Override
        public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {}

        @Override
        public void onReceiveCompletion(
                Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {}

        @Override
        public void onCompletionsHandled(Endpoint endpoint) {}

        @Override
        public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
            ends.incrementAndGet();
            end.complete(cause);
        }
    }

    @Test
    void whoAcceptedIsToldOnceAndThePeerIsDisconnected() throws Exception {
        SoftProvider provider = new SoftProvider(SoftOptions.ofSystemProperties());
        try (MultiThreadIoEventLoopGroup group = group(provider);
                MultiThreadIoEventLoopGroup over = group(provider)) {
            IoEventLoop loop = group.next();
            IoEventLoop ended = over.next();
            over.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
            Ending accepting = new Ending();
            RecordingListenerHandler listening = new RecordingListenerHandler(loop);
            listening.whenRequested(connection -> {
                Endpoint unused = connection.accept(ended, EndpointOptions.DEFAULTS, accepting);
            });
            Listener listener = provider.listen(
                    loop,
                    new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                    ListenOptions.DEFAULTS,
                    listening);
            RecordingEndpointHandler client = new RecordingEndpointHandler("client", loop);
            Endpoint unused =
                    provider.connect(loop, listening.awaitListening().localAddress(), EndpointOptions.DEFAULTS, client);
            assertThat(accepting.end.get()).isInstanceOf(ConnectionException.class);
            assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.class);
            assertThat(accepting.ends).hasValue(1);
            listener.close();
        }
    }

    private static MultiThreadIoEventLoopGroup group(SoftProvider provider) {
        return new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
    }
}
