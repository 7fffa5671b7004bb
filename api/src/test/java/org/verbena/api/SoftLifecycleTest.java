package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

class SoftLifecycleTest extends LifecycleSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    /** A peer that accepts TCP connections and says nothing. */
    private static final class Silent implements AutoCloseable {
        private final ServerSocket listening;

        Silent() throws IOException {
            listening = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
            listening.setSoTimeout((int) Patience.LIMIT.toMillis());
        }

        int port() {
            return listening.getLocalPort();
        }

        /** The next connection, once its first bytes have come. */
        Socket next() throws IOException {
            Socket peer = listening.accept();
            peer.setSoTimeout((int) Patience.LIMIT.toMillis());
            assertThat(peer.getInputStream().read()).isNotNegative();
            return peer;
        }

        @Override
        public void close() throws IOException {
            listening.close();
        }
    }

    /** Reads until the peer has closed the connection. */
    private static void closed(Socket peer) throws IOException {
        try (peer) {
            peer.getInputStream().readAllBytes();
        }
    }

    private static List<Thread> loopThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("verbena-"))
                .toList();
    }

    private static void gone(List<Thread> before) {
        Patience.until("its threads have ended", () -> before.containsAll(loopThreads()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"soft", "ladder"})
    void connectingCanBeInterrupted(String how) throws Exception {
        List<Thread> before = loopThreads();
        try (Silent silent = new Silent()) {
            CompletableFuture<Throwable> outcome = new CompletableFuture<>();
            Thread connecting = Thread.ofVirtual().start(() -> {
                try {
                    RdmaClient.builder()
                            .provider(how)
                            .connectTimeout(Duration.ofMinutes(10))
                            .connect("127.0.0.1", silent.port());
                    outcome.completeExceptionally(new AssertionError("connected"));
                } catch (Throwable failure) {
                    outcome.complete(
                            Thread.currentThread().isInterrupted() ? failure : new AssertionError("not interrupted"));
                }
            });
            Socket peer = silent.next();
            connecting.interrupt();
            assertThat(Patience.await("its outcome", outcome))
                    .isInstanceOf(ConnectionException.class)
                    .hasCauseInstanceOf(InterruptedException.class)
                    .hasMessageContaining("127.0.0.1:" + silent.port());
            closed(peer);
            gone(before);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"cancel", "orTimeout", "complete"})
    void connectingStopsWithItsFuture(String how) throws Exception {
        List<Thread> before = loopThreads();
        try (Silent silent = new Silent()) {
            CompletableFuture<RdmaClient> connecting = RdmaClient.builder()
                    .provider("soft")
                    .connectTimeout(Duration.ofMinutes(10))
                    .connectAsync("127.0.0.1", silent.port());
            Socket peer = silent.next();
            switch (how) {
                case "cancel" -> connecting.cancel(true);
                case "orTimeout" -> connecting.orTimeout(1, TimeUnit.MILLISECONDS);
                default -> connecting.completeExceptionally(new IllegalStateException("for a test"));
            }
            closed(peer);
            gone(before);
        }
    }

    @Test
    void connectingStopsOnSharedLoops() throws Exception {
        try (Silent silent = new Silent()) {
            for (boolean ladder : new boolean[] {false, true}) {
                RdmaClient.Builder builder = RdmaClient.builder().group(group).connectTimeout(Duration.ofMinutes(10));
                if (ladder) {
                    builder.ladder(LadderOptions.DEFAULTS);
                }
                CompletableFuture<RdmaClient> connecting = builder.connectAsync("127.0.0.1", silent.port());
                Socket peer = silent.next();
                connecting.cancel(false);
                closed(peer);
            }
        }
    }

    /** Completing the future early must not stop others that share its loops. */
    @Test
    void aFutureThatIsCompleteStopsNothing() throws Exception {
        try (RdmaServer server = RdmaServer.builder()
                .group(group)
                .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()))) {
            CompletableFuture<RdmaClient> connecting =
                    RdmaClient.builder().group(group).connectAsync("127.0.0.1", server.port());
            CompletableFuture<Boolean> interrupted = connecting.handle(
                    (client, failure) -> Thread.currentThread().isInterrupted());
            RdmaClient client = Patience.await("the client", connecting);
            assertThat(Patience.await("its stage", interrupted)).isFalse();
            connecting.cancel(true);
            connecting.obtrudeException(new IllegalStateException("for a test"));
            assertThat(Patience.await("a reply", client.request(new byte[1]))).hasSize(1);
            client.close();
        }
    }

    @Test
    void endingLoopsFailAHandshake() throws Exception {
        try (Silent silent = new Silent()) {
            for (boolean ladder : new boolean[] {false, true}) {
                RdmaEventLoopGroup loops = new RdmaEventLoopGroup("soft", 1);
                RdmaClient.Builder builder = RdmaClient.builder().group(loops);
                if (ladder) {
                    builder.ladder(LadderOptions.DEFAULTS);
                }
                CompletableFuture<RdmaClient> connecting = builder.connectAsync("127.0.0.1", silent.port());
                Socket peer = silent.next();
                loops.close();
                assertThat(failure("connecting", connecting)).isInstanceOf(ConnectionException.class);
                closed(peer);
            }
        }
    }
}
