package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.client.Target;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.Patience;

/** A target of many addresses of which none connects: how much work is each of them for the thread of all clients? */
@Timeout(300)
class ManyAddressesTest {
    private static final int FEW = 500;
    private static final int MANY = 4000;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** Reaches nobody, at once. */
    private static class Nowhere implements Dialer {
        final AtomicInteger dials = new AtomicInteger();

        @Override
        public Connected connect(SocketAddress address, @Nullable List<String> rungs, long beganNanos) {
            dials.incrementAndGet();
            throw new ConnectionException.Unreachable("nobody listens there");
        }

        @Override
        public LoopClock clock() {
            return LoopClock.system();
        }

        @Override
        public @Nullable LadderOptions ladder() {
            return null;
        }

        @Override
        public boolean isEnding() {
            return false;
        }

        @Override
        public CompletableFuture<Void> close() {
            return CompletableFuture.completedFuture(null);
        }
    }

    /** Reaches nobody, and does not say so before the test lets it. */
    private static final class Silent extends Nowhere {
        private final AtomicInteger running;
        private final AtomicInteger max = new AtomicInteger();
        private final CountDownLatch over;

        Silent(AtomicInteger running, CountDownLatch over) {
            this.running = running;
            this.over = over;
        }

        @Override
        public Connected connect(SocketAddress address, @Nullable List<String> rungs, long beganNanos) {
            max.accumulateAndGet(running.incrementAndGet(), Math::max);
            try {
                over.await();
                return super.connect(address, rungs, beganNanos);
            } catch (InterruptedException cancelled) {
                throw new ConnectionException("cancelled");
            } finally {
                running.decrementAndGet();
            }
        }
    }

    /** What the thread has allocated until now, which counts what its steps copy and walk through. */
    private static long allocatedBytes() {
        CompletableFuture<Long> bytes = new CompletableFuture<>();
        Control.of(LoopClock.system())
                .submit(() -> bytes.complete(
                        THREADS.getThreadAllocatedBytes(Thread.currentThread().threadId())));
        return Patience.await("a step", bytes);
    }

    /** Of the first attempt with each address. */
    private static long bytesPerDial(int addresses) {
        Nowhere dialer = new Nowhere();
        Links links = links(dialer, 0);
        long before = allocatedBytes();
        begin(links, addresses);
        CompletableFuture<Void> first = links.first();
        Patience.until("all attempts have failed", first::isDone);
        long bytes = allocatedBytes() - before;
        assertThat(dialer.dials).hasValueGreaterThanOrEqualTo(addresses);
        Patience.await("closing", links.close());
        return bytes / addresses;
    }

    private static void begin(Links links, int addresses) {
        List<InetSocketAddress> nowhere = IntStream.range(0, addresses)
                .mapToObj(i -> new InetSocketAddress("127.0.0.1", 1 + i))
                .toList();
        links.begin(Target.of(nowhere), NameLookup.SYSTEM);
    }

    private static Links links(Dialer dialer, int connectMillis) {
        long hour = TimeUnit.HOURS.toNanos(1);
        return new Links(
                "nowhere",
                dialer,
                new Links.Options(
                        1,
                        true,
                        false,
                        hour,
                        connectMillis,
                        hour,
                        new Backoff(hour, hour),
                        0,
                        0,
                        SendLimit.Bounds.DEFAULTS,
                        CallPlan.ONCE,
                        List.of(),
                        List.of()));
    }

    @Test
    void eachIsAsMuchWorkAsOneOfFew() {
        bytesPerDial(FEW); // loads classes
        long few = bytesPerDial(FEW);
        assertThat(bytesPerDial(MANY)).isLessThan(2 * few);
    }

    @Test
    void ofThoseThatDoNotAnswerAFewAreTriedAtOnceAndOtherClientsConnect() {
        CountDownLatch over = new CountDownLatch(1);
        AtomicInteger running = new AtomicInteger();
        Map<Links, Silent> clients = new LinkedHashMap<>();
        for (int i = 0; i < 6; i++) {
            Silent dialer = new Silent(running, over);
            Links links = links(dialer, 0);
            clients.put(links, dialer);
            int before = running.get();
            begin(links, FEW);
            int most = i < 4 ? DialLimit.MAX_OF_CLIENT : DialLimit.MIN_OF_CLIENT;
            Patience.until("it tries as many as it may", () -> running.get() == before + most);
        }
        assertThat(running).hasValue(DialLimit.MAX_OF_ALL + 2 * DialLimit.MIN_OF_CLIENT);
        Nowhere other = new Nowhere();
        Links prompt = links(other, 0);
        begin(prompt, FEW);
        Patience.until("all attempts of another client are over", prompt.first()::isDone);
        Patience.await("closing", prompt.close());
        assertThat(running).hasValue(DialLimit.MAX_OF_ALL + 2 * DialLimit.MIN_OF_CLIENT);
        over.countDown();
        for (Map.Entry<Links, Silent> client : clients.entrySet()) {
            Patience.until("all are tried", client.getKey().first()::isDone);
            assertThat(client.getValue().dials).hasValueGreaterThanOrEqualTo(FEW);
            Patience.await("closing", client.getKey().close());
        }
        assertThat(clients.values())
                .allSatisfy(dialer -> assertThat(dialer.max.get())
                        .isLessThanOrEqualTo(DialLimit.MAX_OF_ALL + 3 * DialLimit.MIN_OF_CLIENT));
    }

    @Test
    void theConnectTimeoutHoldsAndClosingEndsAllAttempts() {
        AtomicInteger running = new AtomicInteger();
        Links links = links(new Silent(running, new CountDownLatch(1)), 200);
        begin(links, MANY);
        CompletableFuture<Void> first = links.first();
        Patience.until("it is given up", first::isDone);
        assertThat(first.exceptionNow()).isInstanceOf(ConnectionException.TimedOut.class);
        Patience.await("closing", links.close());
        Patience.until("the attempts have ended", () -> running.get() == 0);
        Links next = links(new Nowhere(), 0);
        begin(next, FEW);
        Patience.until("others have their turns", next.first()::isDone);
        Patience.await("closing", next.close());
    }
}
