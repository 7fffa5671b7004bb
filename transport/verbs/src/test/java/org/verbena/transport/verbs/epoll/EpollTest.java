package org.verbena.transport.verbs.epoll;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.spi.Patience;

@EnabledOnOs(OS.LINUX)
@Timeout(240)
class EpollTest {
    private final Epoll epoll = new Epoll(4);
    private final EventDescriptor event = new EventDescriptor();

    @AfterEach
    void close() {
        event.close();
        event.close();
        epoll.close();
        epoll.close();
    }

    @Test
    void isAvailable() {
        assertThat(Epoll.unavailabilityCause()).isNull();
    }

    @Test
    void reportsASignalWithItsData() {
        epoll.add(event.fd(), Epoll.READABLE, 0x1234_5678_9abc_def0L);
        assertThat(epoll.await(0)).isZero();
        event.signal();
        event.signal();
        assertThat(epoll.await(-1)).isEqualTo(1);
        assertThat(epoll.data(0)).isEqualTo(0x1234_5678_9abc_def0L);
        assertThat(epoll.events(0)).isEqualTo(Epoll.READABLE);
        assertThat(epoll.await(0)).as("readable until it is drained").isEqualTo(1);
        assertThat(event.drain()).isTrue();
        assertThat(event.drain()).isFalse();
        assertThat(epoll.await(0)).isZero();
    }

    @Test
    void reportsAnEdgeOnce() {
        epoll.add(event.fd(), Epoll.READABLE | Epoll.EDGE_TRIGGERED, 1);
        event.signal();
        assertThat(epoll.await(-1)).isEqualTo(1);
        assertThat(epoll.await(0)).isZero();
        event.signal();
        assertThat(epoll.await(-1)).isEqualTo(1);
    }

    @Test
    void reportsSeveralDescriptors() {
        try (EventDescriptor second = new EventDescriptor();
                EventDescriptor third = new EventDescriptor()) {
            epoll.add(event.fd(), Epoll.READABLE, 1);
            epoll.add(second.fd(), Epoll.READABLE, 2);
            epoll.add(third.fd(), Epoll.READABLE, -3);
            event.signal();
            second.signal();
            third.signal();
            assertThat(epoll.await(-1)).isEqualTo(3);
            assertThat(new long[] {epoll.data(0), epoll.data(1), epoll.data(2)}).containsExactlyInAnyOrder(1, 2, -3);
            epoll.remove(second.fd());
            assertThat(epoll.await(0)).isEqualTo(2);
            epoll.remove(third.fd());
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void waitsAsLongAsItWasToldWithAndWithoutPwait2(boolean pwait2) {
        if (!pwait2) {
            epoll.forgetPwait2();
        }
        long start = System.nanoTime();
        assertThat(epoll.await(30_500_000)).isZero();
        assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(30_500_000);
        assertThat(epoll.await(1)).isZero();
    }

    @Test
    void isWokenByAnotherThread() throws Exception {
        epoll.add(event.fd(), Epoll.READABLE, 9);
        // The kernel's state of this thread: S while it is blocked.
        Path stat = Path.of(
                "/proc", Files.readSymbolicLink(Path.of("/proc/thread-self")).toString(), "stat");
        Thread waker = Thread.ofPlatform().start(() -> {
            Patience.until("it is blocked", () -> {
                try {
                    return Files.readString(stat).contains(") S ");
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
            event.signal();
        });
        assertThat(epoll.await(-1)).isEqualTo(1);
        assertThat(epoll.data(0)).isEqualTo(9);
        waker.join();
    }

    /** A process that was stopped finds its waits interrupted (signal(7)). */
    @ParameterizedTest
    @ValueSource(longs = {-1, 3_600_000_000_000L})
    void endsAWaitThatASignalInterruptsWithoutAnError(long timeoutNanos, @TempDir Path directory) throws Exception {
        Path wanted = Files.createFile(directory.resolve("wanted"));
        // Never killed, which could be between its two signals.
        String command = "while [ -e $1 ]; do sleep 0.05; kill -STOP $0 && kill -CONT $0 || exit; done";
        String own = Long.toString(ProcessHandle.current().pid());
        Process signals = new ProcessBuilder("sh", "-c", command, own, wanted.toString()).start();
        try {
            assertThat(epoll.await(timeoutNanos)).isZero();
        } finally {
            Files.delete(wanted);
            signals.waitFor();
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 0, 1_000_000})
    void saysWhyItCannotWait(long timeoutNanos) {
        try (Epoll none = new Epoll(0)) {
            assertThatThrownBy(() -> none.await(timeoutNanos))
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("EINVAL");
        }
    }

    @Test
    void saysWhatFailed() {
        assertThatThrownBy(() -> epoll.add(-1, Epoll.READABLE, 0))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("EPOLL_CTL_ADD")
                .hasMessageContaining("EBADF");
        assertThatThrownBy(() -> epoll.remove(event.fd()))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("ENOENT");
        epoll.add(event.fd(), Epoll.READABLE, 0);
        assertThatThrownBy(() -> epoll.add(event.fd(), Epoll.READABLE, 0)).hasMessageContaining("EEXIST");
    }

    @Test
    void ignoresASignalAfterTheEnd() {
        EventDescriptor gone = new EventDescriptor();
        gone.close();
        gone.signal();
    }

    @Test
    void allocatesNothingPerWait() {
        epoll.add(event.fd(), Epoll.READABLE, 1);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        // Compiled code allocates nothing; when it gets compiled depends on how busy the machine is.
        long allocated = Long.MAX_VALUE;
        long sum = 0;
        for (int round = 0; round < 100 && allocated > 8_000; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 10_000; i++) {
                sum += turn();
            }
            allocated = threads.getCurrentThreadAllocatedBytes() - before;
        }
        assertThat(sum).isPositive();
        assertThat(allocated).as("bytes in 10,000 turns").isLessThanOrEqualTo(8_000);
    }

    private long turn() {
        event.signal();
        long seen = epoll.await(1_000_000) + epoll.data(0) + epoll.events(0);
        event.drain();
        return seen + epoll.await(0);
    }
}
