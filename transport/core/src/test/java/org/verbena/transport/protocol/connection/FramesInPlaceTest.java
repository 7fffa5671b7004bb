package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.transport.Framing;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.wire.Wire;

/** Messages that are taken from where they lie in memory of the endpoint: without receives and their completions. */
@Timeout(240)
class FramesInPlaceTest extends SimulatedPair {
    private static final MessageOptions ROOMY = OPTIONS.withReceives(8, 8192);
    private static final long POOL_BYTES = 1 << 20;

    private long framesBefore;

    @BeforeEach
    void inPlace() {
        network.left.copies = true;
        network.right.copies = true;
        network.right.inPlace = true;
    }

    private void connectWith(MessageOptions options) {
        connect(options, options, POOL_BYTES);
        settle();
        framesBefore = right.connection.statistics().framesReceived();
        network.right.receivesPosted = 0;
        network.right.completed = 0;
        network.right.taken = 0;
    }

    private void send(int... lengths) {
        for (int length : lengths) {
            left.sendPooled(length);
        }
        left.connection.flush();
        settle();
    }

    @ParameterizedTest
    @EnumSource(value = Framing.class, names = "RAW", mode = EnumSource.Mode.EXCLUDE)
    void aMessageTakesNoReceiveAndHasNoCompletion(Framing framing) throws Exception {
        connectWith(ROOMY.withFraming(framing));
        for (int i = 1; i <= 100; i++) {
            send(40 * i);
        }
        assertThat(right.received).isEqualTo(100);
        assertThat(network.right.taken).isEqualTo(100);
        // Only frames of control take receives: the peer asks for grants, since it gets no answers.
        assertThat(network.right.receivesPosted).isLessThanOrEqualTo(network.right.completed);
        assertThat(network.right.completed)
                .isEqualTo(right.connection.statistics().framesReceived() - framesBefore - network.right.taken);
        assertThat(right.connection.statistics().messagesReceived()).isEqualTo(100);
        end();
    }

    @Test
    void severalMessagesInAFrameAreCopiedOnce() throws Exception {
        connectWith(ROOMY);
        for (int i = 0; i < 50; i++) {
            send(0, 1, 63, 64, 65, 1000);
        }
        assertThat(right.received).isEqualTo(300);
        assertThat(network.left.copied).isEqualTo(50);
        assertThat(network.right.taken).isEqualTo(50);
        // Only frames of control take receives: the peer asks for grants, since it gets no answers.
        assertThat(network.right.receivesPosted).isLessThanOrEqualTo(network.right.completed);
        assertThat(network.right.completed)
                .isEqualTo(right.connection.statistics().framesReceived() - framesBefore - network.right.taken);
        end();
    }

    @Test
    void aFrameCountsBeforeItsMessageIsDelivered() throws Exception {
        connectWith(ROOMY);
        List<Long> frames = new ArrayList<>();
        right.whim = () -> frames.add(right.connection.statistics().framesReceived() - framesBefore);
        send(64);
        assertThat(frames).startsWith(1L);
        right.whim = () -> {};
        end();
    }

    /** A message has a block of its size, and counts with its user's memory until it is released. */
    @Test
    void aMessageThatIsKeptTakesABlockOfItsSize() throws Exception {
        connectWith(ROOMY);
        right.keepMessages = true;
        long before = right.receivePool.metrics().usedBytes();
        send(100);
        assertThat(right.receivePool.metrics().usedBytes() - before).isBetween(100L, 128L);
        end();
    }

    @Test
    void readingOffHoldsThePeerBack() throws Exception {
        connectWith(ROOMY);
        right.setReading(false);
        for (int i = 0; i < 50; i++) {
            send(2000);
        }
        assertThat(right.received).isZero();
        assertThat(network.right.taken).isZero();
        assertThat(network.right.completed).isLessThanOrEqualTo(8);
        assertThat(left.connection.isWritable()).isFalse();
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(50);
        end();
    }

    /** What is left of a frame waits in copies, and what follows in receives. */
    @Test
    void readingMayGoOffWithinAFrame() throws Exception {
        connectWith(ROOMY);
        long before = right.receivePool.metrics().usedBytes();
        right.whim = () -> {
            if (right.received % 5 == 2) {
                right.setReading(false);
            }
        };
        send(10, 20, 30, 40, 0, 60, 70, 80, 90, 100);
        assertThat(network.right.taken).isEqualTo(1);
        assertThat(right.received).isEqualTo(2);
        for (int i = 0; i < 50; i++) {
            send(2000, 5);
        }
        assertThat(right.received).isEqualTo(2);
        assertThat(network.right.completed).isLessThanOrEqualTo(8);
        for (int i = 0; i < 50 && right.received < 110; i++) {
            right.setReading(true);
            settle();
        }
        assertThat(right.received).isEqualTo(110);
        assertThat(right.receivePool.metrics().usedBytes()).isLessThanOrEqualTo(before + 8 * 8192);
        right.whim = () -> {};
        right.setReading(true);
        settle();
        int taken = network.right.taken;
        send(64);
        assertThat(network.right.taken).isEqualTo(taken + 1);
        end();
    }

    /** Nothing is delivered behind a close or an abort in a callback, and nothing is lost of the memory. */
    @ParameterizedTest
    @CsvSource({"true", "false"})
    void aCallbackMayEndTheConnection(boolean isClose) throws Exception {
        connectWith(ROOMY);
        right.whim = () -> {
            if (right.received == 2) {
                if (isClose) {
                    right.connection.close();
                } else {
                    right.connection.abort(null);
                }
            }
        };
        send(10, 20, 30, 40);
        assertThat(network.right.taken).isEqualTo(1);
        assertThat(right.received).isEqualTo(2);
        assertThat(right.inactive).isEqualTo(1);
        assertThat(left.inactive).isEqualTo(1);
        left.checkMemory();
        right.checkMemory();
    }

    /** A user that keeps everything gets no more than it would in receives. */
    @Test
    void whatTheUserKeepsIsBounded() throws Exception {
        connectWith(ROOMY);
        right.keepMessages = true;
        for (int i = 0; i < 400; i++) {
            send(4000);
        }
        assertThat(network.right.taken).isPositive();
        assertThat(right.received).isLessThan(400);
        // Its share and one message, and the receives that it may hold beside those that are posted.
        assertThat(right.receivePool.metrics().usedBytes()).isLessThanOrEqualTo(POOL_BYTES / 8 + 4096 + 2 * 8 * 8192);
        right.keepMessages = false;
        right.releaseKept(Integer.MAX_VALUE);
        settle();
        assertThat(right.received).isEqualTo(400);
        end();
    }

    /** What receives and messages were promised is left to them. */
    @Test
    void nothingIsCopiedWhileMemoryIsScarce() throws Exception {
        connectWith(ROOMY);
        List<ByteBuf> others = new ArrayList<>();
        while (!right.receivePool.isScarce()) {
            others.add(right.receivePool.allocate(64 << 10));
        }
        send(50);
        send(51, 52);
        assertThat(right.received).isEqualTo(3);
        assertThat(network.right.taken).isZero();
        others.forEach(ByteBuf::release);
        assertThat(right.receivePool.isScarce()).isFalse();
        send(50);
        assertThat(network.right.taken).isEqualTo(1);
        end();
    }

    /** A frame of which not all has memory is taken whole, in a receive. */
    @Test
    void aFrameIsTakenWhole() throws Exception {
        connectWith(ROOMY);
        right.keepMessages = true;
        while (right.received < 300) {
            int before = network.right.taken;
            send(900, 900, 900, 900);
            if (network.right.taken == before) {
                break; // beyond the user's share
            }
        }
        assertThat(right.received % 4).isZero();
        assertThat(right.receivePool.metrics().usedBytes()).isLessThanOrEqualTo(POOL_BYTES / 8 + 4096 + 2 * 8 * 8192);
        right.keepMessages = false;
        right.releaseKept(Integer.MAX_VALUE);
        end();
    }

    /** The memory of the pool is spent, by others or in the middle of a frame: what has come is delivered. */
    @ParameterizedTest
    @CsvSource({"0", "1", "3"})
    void messagesComeWithoutMemory(int blocksLeft) throws Exception {
        connectWith(ROOMY);
        right.keepMessages = true;
        List<ByteBuf> hoard = new ArrayList<>();
        for (int bytes = 256 << 10; bytes >= 64; bytes /= 2) {
            for (ByteBuf next = right.receivePool.tryAllocate(bytes, bytes);
                    next != null;
                    next = right.receivePool.tryAllocate(bytes, bytes)) {
                hoard.add(next);
            }
        }
        for (int i = 0; i < blocksLeft; i++) {
            hoard.removeLast().release();
        }
        send(50, 51, 52, 53, 54, 55, 56, 57);
        assertThat(right.received).isEqualTo(8);
        hoard.forEach(ByteBuf::release);
        right.releaseKept(Integer.MAX_VALUE);
        send(64);
        assertThat(right.received).isEqualTo(9);
        end();
    }

    /** A listener of frames sees them all. */
    @Test
    void framesThatSomeoneListensToComeInReceives() throws Exception {
        connectWith(ROOMY);
        List<String> types = new ArrayList<>();
        right.connection.setFrameListener(new Frame.Listener() {
            @Override
            public void onFrameSent(Frame frame) {}

            @Override
            public void onFrameReceived(Frame frame) {
                types.add(frame.type());
            }
        });
        send(64);
        assertThat(types).containsExactly("MESSAGE");
        assertThat(network.right.taken).isZero();
        assertThat(right.received).isEqualTo(1);
        end();
    }

    // What a stranger sends: it is refused as in a receive, and nothing of it is delivered.

    @ParameterizedTest
    @CsvSource({
        "2, 10, 5;6",
        "2, 11, 5;5",
        "2, 10, -1;11",
        "2, 10, 2147483647;3",
        "1, 4, 4",
        "129, 0, 0",
        "-1, 0, 0",
        "2, 0, 0",
        "0, 0, 0"
    })
    void aWrongFrameOfSeveralMessagesIsRefused(int count, int payload, String lengths) {
        network.left.inPlace = true;
        Rogue rogue = hostile();
        int[] numbers =
                List.of(lengths.split(";")).stream().mapToInt(Integer::parseInt).toArray();
        rogue.packed(count, payload, numbers);
        refused();
    }

    @ParameterizedTest
    @CsvSource({"10, 11", "11, 10", "-1, 10", "2147483647, 10"})
    void aWrongLengthIsRefused(int length, int payload) {
        Rogue rogue = hostile();
        rogue.type(Wire.MESSAGE, length, payload);
        refused();
    }

    @Test
    void aGrantThatIsTooLargeIsRefused() {
        Rogue rogue = hostile();
        rogue.grant = 1000;
        rogue.type(Wire.MESSAGE, 10, 10);
        refused();
        assertThat(network.left.taken).isEqualTo(1);
    }

    /** The peer has six grants. */
    @Test
    void framesBeyondTheGrantsAreRefused() {
        Rogue rogue = hostile();
        left.other = left;
        ByteBuffer frame = ByteBuffer.allocate(Wire.HEADER_BYTES)
                .putLong((long) Wire.MESSAGE << 56 | (long) rogue.control << 32 | rogue.grant);
        MemorySegment memory = MemorySegment.ofArray(frame.array());
        for (int i = 0; i < 6; i++) {
            left.sizes.add(0);
            assertThat(left.connection.onMessage(network.left, memory, 0, Wire.HEADER_BYTES))
                    .isTrue();
        }
        assertThat(left.received).isEqualTo(6);
        assertThat(left.connection.onMessage(network.left, memory, 0, Wire.HEADER_BYTES))
                .isTrue();
        left.connection.onCompletionsHandled(network.left);
        settle();
        assertThat(left.received).isEqualTo(6);
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class);
    }

    private Rogue hostile() {
        network.left.inPlace = true;
        Rogue rogue = rogue(ROOMY, Rogue::acknowledge);
        settle();
        assertThat(left.active).isEqualTo(1);
        return rogue;
    }

    private void refused() {
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class);
        assertThat(left.received).isZero();
    }
}
