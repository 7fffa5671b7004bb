package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.netty.channel.Channel;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.concurrent.CompletableFuture;
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
    private static final class Nowhere implements Dialer {
        final AtomicInteger dials = new AtomicInteger();

        @Override
        public Channel connect(SocketAddress address, @Nullable List<String> rungs, long beganNanos) {
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
        List<InetSocketAddress> nowhere = IntStream.range(0, addresses)
                .mapToObj(i -> new InetSocketAddress("127.0.0.1", 1 + i))
                .toList();
        Nowhere dialer = new Nowhere();
        long hour = TimeUnit.HOURS.toNanos(1);
        Links links = new Links(
                "nowhere",
                dialer,
                new Links.Options(
                        1,
                        true,
                        false,
                        hour,
                        0,
                        hour,
                        new Backoff(hour, hour),
                        0,
                        0,
                        SendLimit.Bounds.DEFAULTS,
                        CallPlan.ONCE,
                        List.of(),
                        List.of()));
        long before = allocatedBytes();
        links.begin(Target.of(nowhere), NameLookup.SYSTEM);
        CompletableFuture<Void> first = links.first();
        Patience.until("all attempts have failed", first::isDone);
        long bytes = allocatedBytes() - before;
        assertThat(dialer.dials).hasValueGreaterThanOrEqualTo(addresses);
        Patience.await("closing", links.close());
        return bytes / addresses;
    }

    @Test
    void eachIsAsMuchWorkAsOneOfFew() {
        bytesPerDial(FEW); // loads classes
        long few = bytesPerDial(FEW);
        assertThat(bytesPerDial(MANY)).isLessThan(2 * few);
    }
}
