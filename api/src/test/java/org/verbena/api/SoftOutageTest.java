package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.concurrent.Ticker;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.ClientState;
import org.verbena.api.internal.client.Backoff;
import org.verbena.api.internal.client.Connected;
import org.verbena.api.internal.client.Dialer;
import org.verbena.api.internal.client.Links;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.Patience;

/** A thousand clients lose their server at the same moment, and it comes back. */
class SoftOutageTest extends ApiSuite {
    private static final int CLIENTS = 1000;

    /** The bound of the first wait. */
    private static final long MIN_NANOS = Duration.ofMillis(100).toNanos();

    private static final long MAX_NANOS = Duration.ofSeconds(1).toNanos();

    /** How many attempts of each client fail while the server is away. */
    private static final int FAILURES = 4;

    private static final long WINDOW_NANOS = MIN_NANOS / 10;

    @Override
    protected String provider() {
        return "soft";
    }

    /** A client, and how long it waits before each attempt. */
    private final class Client {
        final Queue<Long> waitsNanos = new ConcurrentLinkedQueue<>();
        final Links links;

        Client(RdmaServer server) {
            ClientSettings how = new ClientSettings();
            how.sharedGroup = group;
            how.backoff = new Backoff(MIN_NANOS, MAX_NANOS);
            ClientDialer dialer = new ClientDialer(how);
            links = new Links("the server", new NotingDialer(dialer, waitsNanos), how.linking());
            dialer.begin(links);
            links.begin(server.localAddress());
        }
    }

    /** Another one, with a clock that notes what is scheduled: clients begin nothing later than their attempts. */
    private record NotingDialer(Dialer inner, Queue<Long> waitsNanos) implements Dialer {
        @Override
        public Connected connect(SocketAddress address, List<String> rungs, long beganNanos) {
            return inner.connect(address, rungs, beganNanos);
        }

        @Override
        public LoopClock clock() {
            return new NotingClock(inner.clock(), waitsNanos);
        }

        @Override
        public LadderOptions ladder() {
            return inner.ladder();
        }

        @Override
        public boolean isEnding() {
            return inner.isEnding();
        }

        @Override
        public CompletableFuture<Void> close() {
            return inner.close();
        }
    }

    private static final class NotingClock extends LoopClock {
        private final LoopClock inner;
        private final Queue<Long> delaysNanos;

        NotingClock(LoopClock inner, Queue<Long> delaysNanos) {
            this.inner = inner;
            this.delaysNanos = delaysNanos;
        }

        @Override
        public long nanoTime() {
            return inner.nanoTime();
        }

        @Override
        public Ticker ticker() {
            return inner.ticker();
        }

        /** {@inheritDoc} So a client's steps are its own, by this clock. */
        @Override
        public boolean isSystem() {
            return false;
        }

        @Override
        public Future<?> schedule(Runnable task, long delayNanos) {
            delaysNanos.add(delayNanos);
            return inner.schedule(task, delayNanos);
        }

        @Override
        public Thread newVirtualThread(String name, Runnable task) {
            return inner.newVirtualThread(name, task);
        }

        @Override
        public RandomGenerator random() {
            return inner.random();
        }

        @Override
        public void passUntil(BooleanSupplier over) {
            inner.passUntil(over);
        }
    }

    private RdmaServer serve(int port) {
        return RdmaServer.builder()
                .group(group)
                .bind(host(), port, (exchange, message) -> exchange.reply(message.retain()));
    }

    /**
     * How many attempts there are in each window of time, from what the clients have chosen: a machine that is busy
     * begins them later, but not with others.
     */
    @Test
    void theyComeBackOneAfterAnother() {
        RdmaServer server = serve(lastingPort());
        int port = server.port();
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < CLIENTS; i++) {
            clients.add(new Client(server));
        }
        clients.forEach(client -> Patience.await("a connection", client.links.first()));
        assertThat(server.connections().size()).isEqualTo(CLIENTS);
        clients.forEach(client -> client.waitsNanos.clear());
        server.close();
        for (Client client : clients) {
            Patience.until("its attempts have failed", () -> client.waitsNanos.size() > FAILURES);
        }
        try (RdmaServer back = serve(port)) {
            for (Client client : clients) {
                Patience.until("it is back", () -> client.links.state() == ClientState.READY);
            }
            assertThat(back.connections().size()).isEqualTo(CLIENTS);

            int[] attempts = new int[(int) (FAILURES * MAX_NANOS / WINDOW_NANOS) + 1];
            int[] first = new int[attempts.length];
            for (Client client : clients) {
                long atNanos = 0;
                int failed = 0;
                for (long waitNanos : client.waitsNanos) {
                    atNanos += waitNanos;
                    if (failed == 0) {
                        first[(int) (atNanos / WINDOW_NANOS)]++;
                    }
                    if (++failed > FAILURES) {
                        break;
                    }
                    attempts[(int) (atNanos / WINDOW_NANOS)]++;
                }
            }
            // A hundred are expected in each of the first ten windows, with a standard deviation of ten.
            assertThat(Arrays.stream(first).max().orElseThrow()).isLessThan(CLIENTS / 5);
            assertThat(Arrays.stream(attempts).max().orElseThrow()).isLessThan(CLIENTS / 4);

            List<CompletableFuture<Void>> closing = new ArrayList<>();
            clients.forEach(client -> closing.add(client.links.close()));
            closing.forEach(each -> Patience.await("a client closing", each));
        }
    }
}
