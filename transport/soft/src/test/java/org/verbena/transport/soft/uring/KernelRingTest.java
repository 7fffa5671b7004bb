package org.verbena.transport.soft.uring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.IoUring;
import org.verbena.transport.system.SelectorDescriptor;

/** The ring of this machine's kernel. */
@Timeout(60)
class KernelRingTest {
    /** More than the ring has room for. */
    private static final int MANY = 5_000;

    @BeforeEach
    void needsTheKernel() {
        assumeThat(SocketIo.unavailabilityCause()).isNull();
    }

    @Test
    void completionsThatDoNotFitAreNotLost() throws IOException {
        KernelRing ring = new KernelRing();
        try (Arena arena = Arena.ofConfined()) {
            BitSet seen = new BitSet();
            ring.start((id, result, flags) -> {
                assertThat(seen.get((int) id)).isFalse();
                seen.set((int) id);
            });
            int descriptor = IoUring.eventfd(Errno.newCapture(arena));
            IoUring.signal(descriptor);
            for (int i = 0; i < MANY; i++) {
                ring.poll(descriptor, IoUring.POLLIN, i);
            }
            while (seen.cardinality() < MANY) {
                ring.look();
            }
            IoUring.close(descriptor);
        } finally {
            ring.close(true);
        }
    }

    @Test
    void aLookThatFindsNothingDoesNotEnterTheKernel() throws IOException {
        KernelRing ring = new KernelRing();
        try (Arena arena = Arena.ofConfined()) {
            List<Long> seen = new ArrayList<>();
            ring.start((id, result, flags) -> seen.add(id));
            int descriptor = IoUring.eventfd(Errno.newCapture(arena));
            ring.poll(descriptor, IoUring.POLLIN, 7);
            ring.look();
            long before = ring.enters();
            for (int i = 0; i < 1_000; i++) {
                ring.look();
            }
            assertThat(ring.enters()).isEqualTo(before);
            IoUring.signal(descriptor);
            while (seen.isEmpty()) {
                ring.look();
            }
            assertThat(seen).containsExactly(7L);
            IoUring.close(descriptor);
        } finally {
            ring.close(true);
        }
    }

    @Test
    void aWaitEndsAtItsTime() throws IOException {
        KernelRing ring = new KernelRing();
        try {
            ring.start((id, result, flags) -> {});
            ring.await(1_000_000);
            ring.await(0);
            assertThat(ring.enters()).isBetween(2L, 4L); // one that timed out is repeated without a wait
        } finally {
            ring.close(true);
        }
    }

    @Test
    void descriptorsOfSocketsAreFound() throws IOException {
        List<SocketChannel> open = new ArrayList<>();
        List<Integer> found = new ArrayList<>();
        try (ServerSocketChannel server = ServerSocketChannel.open();
                Arena arena = Arena.ofConfined()) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            for (int i = 0; i < 100; i++) {
                open.add(SocketChannel.open(server.getLocalAddress()));
                open.add(server.accept());
            }
            for (SocketChannel channel : open.reversed()) {
                int descriptor = SocketDescriptor.of(channel);
                assertThat(found).doesNotContain(descriptor);
                found.add(descriptor);
                channel.setOption(jdk.net.ExtendedSocketOptions.TCP_KEEPIDLE, 1234);
                assertThat(IoUring.tcpOption(
                                Errno.newCapture(arena), descriptor, IoUring.TCP_KEEPIDLE, arena.allocate(8, 4)))
                        .isEqualTo(1234);
                channel.setOption(jdk.net.ExtendedSocketOptions.TCP_KEEPIDLE, 7200);
            }
        } finally {
            found.forEach(SocketDescriptor::forget);
            for (SocketChannel channel : open) {
                channel.close();
            }
        }
    }

    @Test
    void theDescriptorOfASelectorIsFound() throws IOException {
        try (Selector one = Selector.open();
                Selector other = Selector.open()) {
            int descriptor = SelectorDescriptor.of(one);
            assertThat(SelectorDescriptor.of(other)).isNotEqualTo(descriptor);
            assertThat(IoUring.isReadable(descriptor)).isFalse();
            one.wakeup();
            assertThat(IoUring.isReadable(descriptor)).isTrue();
        }
    }

    @Test
    void aSendThatTheKernelDoesNotHaveYetIsLengthened() throws IOException {
        KernelRing ring = new KernelRing();
        try {
            List<Integer> results = new ArrayList<>();
            ring.start((id, result, flags) -> results.add(result));
            try (Arena arena = Arena.ofConfined();
                    ServerSocketChannel server = ServerSocketChannel.open()) {
                server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
                try (SocketChannel client = SocketChannel.open(server.getLocalAddress());
                        SocketChannel accepted = server.accept()) {
                    int descriptor = SocketDescriptor.of(client);
                    int ticket = ring.send(descriptor, arena.allocate(8).address(), 3, 1);
                    assertThat(ring.lengthen(ticket, 8)).isTrue();
                    while (results.isEmpty()) {
                        ring.look();
                    }
                    assertThat(ring.lengthen(ticket, 9)).isFalse();
                    assertThat(results).containsExactly(8);
                    ByteBuffer got = ByteBuffer.allocate(8);
                    while (got.hasRemaining()) {
                        accepted.read(got);
                    }
                    SocketDescriptor.forget(descriptor);
                }
            }
        } finally {
            ring.close(true);
        }
    }
}
