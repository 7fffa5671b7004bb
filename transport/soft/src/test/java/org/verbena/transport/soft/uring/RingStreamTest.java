package org.verbena.transport.soft.uring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.IoHandlerContext;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.ffm.Errno;

/** A stream on a kernel that completes short, late, in another order, or not at all. */
@Timeout(60)
class RingStreamTest {
    private static final int DESCRIPTOR = 1_000_000;
    private static final int ECONNRESET = 104;

    private static final IoHandlerContext NOW = new IoHandlerContext() {
        @Override
        public boolean canBlock() {
            return false;
        }

        @Override
        public long delayNanos(long currentTimeNanos) {
            return 0;
        }

        @Override
        public long deadlineNanos() {
            return -1;
        }
    };

    private final FakeRing ring = new FakeRing();
    private final Recorder owner = new Recorder();
    private RingLoop loop;
    private SocketChannel channel;
    private RingStream stream;

    @BeforeEach
    void open() throws IOException {
        loop = RingLoop.on(ring, DESCRIPTOR + 1, () -> 0);
        loop.start();
        channel = SocketChannel.open();
        stream = loop.add(channel, DESCRIPTOR, owner);
        stream.receive();
        turn();
    }

    @AfterEach
    void close() throws IOException {
        channel.close();
        if (!ring.closed) {
            loop.close();
        }
    }

    private void turn() {
        loop.turn(NOW);
    }

    private long write(int... bytes) {
        ByteBuffer buffer = ByteBuffer.allocate(bytes.length);
        for (int next : bytes) {
            buffer.put((byte) next);
        }
        return stream.write(new ByteBuffer[] {buffer.flip()}, 0, 1);
    }

    @Test
    void buffersAreDeliveredInOrderAndGivenBack() {
        FakeRing.Operation receive = ring.pending("receive");
        ring.receive(receive, new byte[] {1, 2}, true);
        ring.receive(receive, new byte[] {3}, true);
        turn();
        assertThat(owner.received.toByteArray()).containsExactly(1, 2, 3);
        assertThat(ring.provided).hasSize(Ring.BUFFERS);
        assertThat(ring.operations).contains(receive);
    }

    @Test
    void nothingBeyondTheLengthOfACompletionIsSeen() {
        FakeRing.Operation receive = ring.pending("receive");
        for (int i = 0; i < 2 * Ring.BUFFERS; i++) {
            ring.receive(receive, new byte[] {9, 9, 9, 9}, true);
            turn();
        }
        owner.received.reset();
        ring.receive(receive, new byte[] {1}, true);
        turn();
        assertThat(owner.received.toByteArray()).containsExactly(1);
    }

    @Test
    void aReceiveThatTheKernelEndedBeginsAgain() {
        ring.receive(ring.pending("receive"), new byte[] {1}, false);
        turn();
        assertThat(ring.isPending("receive")).isTrue();
        ring.complete(ring.pending("receive"), -Errno.ECANCELED, 0);
        turn();
        ring.receive(ring.pending("receive"), new byte[] {2}, true);
        turn();
        assertThat(owner.received.toByteArray()).containsExactly(1, 2);
        assertThat(owner.events).isEmpty();
    }

    @Test
    void buffersThatRunOutAreWaitedFor() {
        FakeRing.Operation receive = ring.pending("receive");
        ring.receive(receive, new byte[] {1}, true);
        ring.complete(receive, -Errno.ENOBUFS, 0);
        turn();
        assertThat(ring.provided).hasSize(Ring.BUFFERS);
        ring.receive(ring.pending("receive"), new byte[] {2}, true);
        turn();
        assertThat(owner.received.toByteArray()).containsExactly(1, 2);
        assertThat(owner.events).isEmpty();
    }

    @Test
    void theEndAndAResetAreReportedOnce() {
        ring.complete(ring.pending("receive"), 0, 0);
        turn();
        turn();
        assertThat(owner.events).containsExactly("ended");
        assertThat(ring.isPending("receive")).isFalse();
        stream.receive();
        assertThat(ring.isPending("receive")).isFalse();
    }

    @Test
    void aResetIsAFailure() {
        ring.complete(ring.pending("receive"), -ECONNRESET, 0);
        turn();
        assertThat(owner.events).containsExactly("failed");
    }

    @Test
    void aShortSendIsContinued() {
        assertThat(write(1, 2, 3, 4, 5)).isEqualTo(5);
        turn();
        FakeRing.Operation send = ring.pending("send");
        assertThat(ring.sent(send)).containsExactly(1, 2, 3, 4, 5);
        ring.complete(send, 2, 0);
        turn();
        assertThat(stream.isSending()).isTrue();
        FakeRing.Operation rest = ring.pending("send");
        assertThat(ring.sent(rest)).containsExactly(3, 4, 5);
        ring.complete(rest, 3, 0);
        turn();
        assertThat(stream.isSending()).isFalse();
    }

    @Test
    void sendsStayInOrder() {
        assertThat(write(1)).isEqualTo(1);
        assertThat(write(2)).as("the kernel does not have it yet").isEqualTo(1);
        turn();
        assertThat(write(3)).as("the kernel has it").isZero();
        stream.awaitWritable(true);
        FakeRing.Operation send = ring.pending("send");
        assertThat(ring.sent(send)).containsExactly(1, 2);
        assertThat(ring.isPending("writable")).isFalse();
        ring.complete(send, 2, 0);
        turn();
        assertThat(owner.events).containsExactly("writable");
        assertThat(write(3)).isEqualTo(1);
        assertThat(ring.sent(ring.pending("send"))).containsExactly(3);
    }

    @Test
    void longWritesAreTheChannels() {
        ByteBuffer tooMuch = ByteBuffer.allocate(RingLoop.SLOT_BYTES + 1);
        assertThat(stream.write(new ByteBuffer[] {tooMuch}, 0, 1)).isEqualTo(-1);
        stream.awaitWritable(true);
        turn();
        ring.complete(ring.pending("writable"), 4, 0);
        turn();
        assertThat(owner.events).containsExactly("writable");
    }

    @Test
    void aBrokenSendEndsTheStreamAfterWhatCameBefore() {
        write(1);
        turn();
        ring.receive(ring.pending("receive"), new byte[] {7}, true);
        ring.complete(ring.pending("send"), -ECONNRESET, 0);
        turn();
        assertThat(owner.received.toByteArray()).containsExactly(7);
        assertThat(owner.events).containsExactly("failed");
        assertThat(stream.isSending()).isFalse();
    }

    @Test
    void directReadingBeginsOnceWhatWasReceivedIsDelivered() {
        FakeRing.Operation receive = ring.pending("receive");
        stream.readDirectly();
        assertThat(ring.isPending("cancel")).isTrue();
        ring.receive(receive, new byte[] {1}, true);
        turn();
        assertThat(owner.events).as("more may come").isEmpty();
        ring.cancelTold();
        turn();
        assertThat(owner.events).containsExactly("readable");
        ring.complete(ring.pending("readable"), 1, 0);
        turn();
        assertThat(owner.events).containsExactly("readable", "readable");
        stream.receive();
        turn();
        ring.receive(ring.pending("receive"), new byte[] {2}, true);
        turn();
        assertThat(owner.received.toByteArray()).containsExactly(1, 2);
    }

    @Test
    void aPollThatWasLeftOverDoesNotReadBeforeWhatTheRingReceives() {
        stream.readDirectly();
        ring.cancelTold();
        turn();
        FakeRing.Operation leftOver = ring.pending("readable");
        stream.receive();
        turn();
        owner.events.clear();
        stream.readDirectly();
        assertThat(stream.mayRead()).isFalse();
        ring.complete(leftOver, 1, 0);
        turn();
        assertThat(owner.events).as("the receive is not cancelled yet").isEmpty();
        ring.receive(ring.pending("receive"), new byte[] {1}, true);
        ring.cancelTold();
        turn();
        assertThat(owner.received.toByteArray()).containsExactly(1);
        assertThat(owner.events).containsExactly("readable");
    }

    @Test
    void aSendThatIsContinuedIsLengthenedByWhatIsNew() {
        write(1, 2, 3);
        turn();
        ring.complete(ring.pending("send"), 1, 0);
        turn();
        int continued = ring.operations.indexOf(ring.pending("send"));
        ring.unsubmit(continued);
        assertThat(write(4)).isEqualTo(1);
        assertThat(ring.sent(ring.pending("send"))).containsExactly(2, 3, 4);
    }

    @ParameterizedTest
    @ValueSource(ints = {Errno.EINTR, Errno.EAGAIN})
    void aSendThatTheKernelInterruptsIsContinued(int error) {
        write(1, 2, 3);
        turn();
        ring.complete(ring.pending("send"), -error, 0);
        turn();
        assertThat(owner.events).isEmpty();
        assertThat(stream.isSending()).isTrue();
        FakeRing.Operation again = ring.pending("send");
        assertThat(ring.sent(again)).containsExactly(1, 2, 3);
        ring.complete(again, 3, 0);
        turn();
        assertThat(stream.isSending()).isFalse();
    }

    /** Registered memory whose arena was closed while a send of it was out. */
    private static ByteBuffer gone(int bytes) {
        try (Arena arena = Arena.ofShared()) {
            return arena.allocate(bytes).asByteBuffer();
        }
    }

    @Test
    void aPieceWhoseMemoryIsGoneTakesNoSlot() {
        for (int i = 0; i <= RingLoop.SLOTS; i++) {
            assertThatThrownBy(() -> stream.write(new ByteBuffer[] {gone(5)}, 0, 1))
                    .isInstanceOf(IllegalStateException.class);
        }
        assertThat(stream.isSending()).isFalse();
        assertThat(ring.isPending("send")).isFalse();
        assertThat(write(1, 2)).isEqualTo(2);
        assertThat(ring.sent(ring.pending("send"))).containsExactly(1, 2);
    }

    /** What the slot held before would be another connection's. */
    @Test
    void aPieceWhoseMemoryIsGoneLengthensNothing() {
        write(1, 2, 3);
        assertThatThrownBy(() -> stream.write(new ByteBuffer[] {ByteBuffer.wrap(new byte[1]), gone(5)}, 0, 2))
                .isInstanceOf(IllegalStateException.class);
        assertThat(ring.sent(ring.pending("send"))).containsExactly(1, 2, 3);
        assertThat(write(4)).isEqualTo(1);
        assertThat(ring.sent(ring.pending("send"))).containsExactly(1, 2, 3, 4);
        turn();
        ring.complete(ring.pending("send"), 4, 0);
        turn();
        assertThat(stream.isSending()).isFalse();
    }

    @Test
    void bytesWithoutABufferAreAFailure() {
        ring.complete(ring.pending("receive"), 3, Ring.MORE);
        turn();
        assertThat(owner.events).containsExactly("failed");
    }

    @Test
    void nothingIsReceivedBehindTheEnd() {
        write(1);
        turn();
        ring.complete(ring.pending("send"), -ECONNRESET, 0);
        ring.receive(ring.pending("receive"), new byte[] {7}, true);
        ring.complete(ring.pending("receive"), -ECONNRESET, 0);
        turn();
        assertThat(owner.received.toByteArray()).isEmpty();
        assertThat(owner.events).containsExactly("failed");
        assertThat(ring.provided).hasSize(Ring.BUFFERS);
    }

    @Test
    void thePeerMayEndItsHalfFirst() {
        write(1);
        turn();
        FakeRing.Operation send = ring.pending("send");
        ring.complete(ring.pending("receive"), 0, 0);
        turn();
        stream.awaitWritable(true);
        ring.complete(send, 1, 0);
        turn();
        assertThat(owner.events).containsExactly("ended", "writable");
        assertThat(write(2)).isEqualTo(1);
        turn();
        ring.complete(ring.pending("send"), -ECONNRESET, 0);
        turn();
        assertThat(owner.events).containsExactly("ended", "writable");
        assertThat(stream.isSending()).isFalse();
    }

    @Test
    void aCancellationThatComesTooLateLosesNothing() {
        FakeRing.Operation receive = ring.pending("receive");
        stream.readDirectly();
        stream.receive();
        ring.receive(receive, new byte[] {1}, true);
        ring.cancelTold();
        turn();
        ring.receive(ring.pending("receive"), new byte[] {2}, true);
        turn();
        assertThat(owner.received.toByteArray()).containsExactly(1, 2);
        assertThat(owner.events).isEmpty();
    }

    @Test
    void completionsInAnotherOrderAreHandled() {
        write(1);
        stream.awaitWritable(true);
        stream.readDirectly();
        turn();
        FakeRing.Operation receive = ring.pending("receive");
        ring.complete(ring.pending("cancel"), 0, 0);
        ring.complete(ring.pending("send"), 1, 0);
        ring.complete(receive, -Errno.ECANCELED, 0);
        turn();
        assertThat(owner.events).containsExactly("writable", "readable");
    }

    @Test
    void memoryIsTheKernelsUntilTheLastCompletionOfAClosedStream() {
        write(1);
        turn();
        FakeRing.Operation receive = ring.pending("receive");
        FakeRing.Operation send = ring.pending("send");
        stream.close();
        turn();
        ring.receive(receive, new byte[] {1}, true);
        turn();
        assertThat(owner.received.toByteArray())
                .as("a closed stream reports nothing")
                .isEmpty();
        assertThat(ring.provided).hasSize(Ring.BUFFERS);
        // Another stream gets neither the number nor the memory of what is under way.
        RingStream other = loop.add(channel, DESCRIPTOR + 2, new Recorder());
        assertThat(other.number).isNotEqualTo(stream.number);
        other.write(new ByteBuffer[] {ByteBuffer.wrap(new byte[] {5})}, 0, 1);
        assertThat(ring.sent(send)).containsExactly(1);
        other.close();
        ring.cancelTold();
        turn();
        ring.cancelTold();
        turn();
        assertThat(loop.add(channel, DESCRIPTOR + 3, new Recorder()).number).isIn(stream.number, other.number);
        assertThat(owner.events).isEmpty();
    }

    @Test
    void aLoopThatEndsWaitsForWhatItHasCancelled() {
        write(1);
        loop.close();
        assertThat(ring.closedIdle).isTrue();
        assertThat(ring.operations).isEmpty();
    }

    @Test
    void whatAnOwnerThrowsIsItsFailure() {
        owner.throwing = true;
        ring.receive(ring.pending("receive"), new byte[] {1}, true);
        turn();
        assertThat(owner.events).containsExactly("threw");
        assertThat(ring.provided).hasSize(Ring.BUFFERS);
    }

    @Test
    void manyCompletionsOfOneLookAreAllHandled() {
        FakeRing.Operation receive = ring.pending("receive");
        for (int i = 0; i < Ring.BUFFERS; i++) {
            ring.receive(receive, new byte[] {(byte) i}, true);
        }
        turn();
        assertThat(owner.received.size()).isEqualTo(Ring.BUFFERS);
        for (int i = 0; i < Ring.BUFFERS; i++) {
            assertThat(owner.received.toByteArray()[i]).isEqualTo((byte) i);
        }
    }

    private static final class Recorder implements RingStream.Owner {
        private final ByteArrayOutputStream received = new ByteArrayOutputStream();
        private final List<String> events = new ArrayList<>();
        private boolean throwing;

        @Override
        public void onReceived(ByteBuffer buffer, MemorySegment segment, int from, int bytes) {
            if (throwing) {
                throw new IllegalStateException("thrown by the test");
            }
            for (int i = from; i < from + bytes; i++) {
                received.write(buffer.get(i));
            }
        }

        @Override
        public void onEnded(@Nullable IOException cause) {
            events.add(cause == null ? "ended" : "failed");
        }

        @Override
        public void onReadable() {
            events.add("readable");
        }

        @Override
        public void onWritable() {
            events.add("writable");
        }

        @Override
        public void onFailure(Throwable cause) {
            events.add("threw");
        }
    }
}
