package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.memory.HeldByUser;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.wire.Wire;

/** Which connection gets memory to receive into, in which order, and how it is released when something fails. */
@Timeout(240)
class MessageMemoryTest extends SimulatedPair {
    private static final MessageBuffers.Waiter NOBODY = () -> {};

    private final HeldByUser nobodysAccount = new HeldByUser(() -> {});

    /** 16 receives of 16 KiB, messages of up to 700,000 bytes, and 1 MiB for all that the right end receives. */
    private void connectedWithAMebibyte() {
        MessageOptions options = MessageOptions.DEFAULTS
                .withReceives(16, 16 << 10)
                .withMaxMessageBytes(700_000)
                .withRendezvousThresholdBytes(40_000);
        connect(options, options, 1 << 20);
        settle();
    }

    private void keepsOneOf(int bytes) {
        right.keepMessages = true;
        left.sendPooled(bytes);
        left.connection.flush();
        settle();
        assertThat(right.kept).hasSize(1);
    }

    @Test
    void aMessageByRendezvousDoesNotOvertakeFragmentsThatWaitForMemory() throws Exception {
        connectedWithAMebibyte();
        ByteBuf others = right.buffers.tryAllocateMessage(650_000, NOBODY, nobodysAccount);
        assertThat(others).isNotNull();
        left.sendHeap(180_000); // all of it is in receives, and there is no memory to assemble it
        left.sendPooled(50_000); // there is memory for this one
        left.connection.flush();
        settle();
        assertThat(right.received).isZero();
        others.release();
        settle();
        assertThat(right.received).isEqualTo(2);
        end();
    }

    /** Three quarters of the memory are for receives once no peer may send messages that need more than the rest. */
    @Test
    void whatAPeerWasPromisedIsForOthersWhenItsConnectionHasEnded() throws Exception {
        connectedWithAMebibyte();
        assertThat(right.buffers.reserveReceives(11, 64 << 10, false)).isFalse();
        end();
        assertThat(right.buffers.reserveReceives(12, 64 << 10, false)).isTrue();
    }

    @Test
    void fragmentsDoNotTakeTheMemoryThatAnEarlierMessageWaitsFor() throws Exception {
        connectedWithAMebibyte();
        ByteBuf others = right.buffers.tryAllocateMessage(650_000, NOBODY, nobodysAccount);
        assertThat(others).isNotNull();
        left.sendPooled(690_000); // waits for all of it
        left.sendHeap(100_000); // takes what there is
        left.connection.flush();
        settle();
        assertThat(right.received).isZero();
        others.release();
        settle();
        assertThat(right.received).isEqualTo(2);
        end();
    }

    @Test
    void aReaderThatPausesLetsOthersHaveTheirTurn() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS
                .withReceives(8, 1024)
                .withMaxMessageBytes(1 << 20)
                .withRendezvousThresholdBytes(10_000);
        Crowd crowd = new Crowd(new Random(3), Device.VERBS, Device.VERBS, options, 16 << 20, 512 << 10);
        for (int i = 0; i < 3; i++) {
            crowd.add();
        }
        crowd.settle();
        Party keeper = crowd.rights.get(0);
        keeper.keepMessages = true;
        for (Party sender : crowd.lefts) {
            sender.sendPooled(300_000);
            sender.connection.flush();
            crowd.settle();
        }
        assertThat(keeper.kept).hasSize(1);
        // It is the first waiter's turn, which it does not take.
        crowd.rights.get(1).setReading(false);
        keeper.releaseKept(1);
        crowd.settle();
        assertThat(crowd.rights.get(2).received).isEqualTo(1);
        crowd.rights.get(1).setReading(true);
        crowd.settle();
        assertThat(crowd.rights.get(1).received).isEqualTo(1);
        crowd.close();
    }

    @Test
    void aCompleteMessageIsDeliveredThoughMemoryWasShortWhenThePeerClosed() throws Exception {
        connectedWithAMebibyte();
        keepsOneOf(640_000);
        left.sendHeap(180_000);
        left.connection.close();
        settle();
        assertThat(left.succeeded).isEqualTo(2);
        right.releaseKept(1);
        settle();
        assertThat(right.received).isEqualTo(2);
        assertThat(right.inactive).isEqualTo(1);
        assertThat(right.inactiveCause).isNull();
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void aPeerThatStallsReadsIsCutOffOnlyWhileOthersWait() throws Exception {
        connected();
        network.left.responsesHeld = true;
        right.sendPooled(50_000);
        right.connection.flush();
        settle();
        pass(60_000);
        assertThat(left.inactive).as("nobody waits").isZero();
        assertThat(left.buffers.tryAllocateMessage((int) Party.POOL_BYTES, NOBODY, nobodysAccount))
                .isNull();
        pass(21_000);
        assertThat(left.inactiveCause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("while others waited for memory");
        assertThat(right.told).isEqualTo(1);
        assertThat(right.failures).hasSize(1);
        left.buffers.forgetMessage(NOBODY);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void aPeerThatAnswersReadsInTimeIsNotCutOff() throws Exception {
        connect(OPTIONS.withMaxMessageBytes(3 << 20), OPTIONS.withMaxMessageBytes(3 << 20));
        settle();
        network.left.responsesHeld = true;
        right.sendPooled(3 << 20);
        right.connection.flush();
        settle();
        assertThat(left.buffers.tryAllocateMessage((int) Party.POOL_BYTES, NOBODY, nobodysAccount))
                .isNull();
        for (int i = 0; i < 3; i++) {
            pass(9_000);
            network.left.respond();
            settle();
        }
        assertThat(left.received).isEqualTo(1);
        left.buffers.forgetMessage(NOBODY);
        end();
    }

    @Test
    void aByteNowAndThenIsNoProgressWithinAMessage() throws Exception {
        Rogue rogue = rogue(OPTIONS.withKeepAliveMillis(0), Rogue::acknowledge);
        settle();
        rogue.type(Wire.MESSAGE, 50_000, 240);
        settle();
        assertThat(left.buffers.tryAllocateMessage((int) Party.POOL_BYTES, NOBODY, nobodysAccount))
                .isNull();
        for (int i = 1; i <= 5 && left.inactive == 0; i++) {
            pass(9_000);
            if (left.inactive == 0) {
                rogue.type(Wire.CONTINUATION, 50_000 - 240 * i, 240);
                settle();
            }
        }
        assertThat(left.inactiveCause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("while others waited for memory");
        left.buffers.forgetMessage(NOBODY);
        left.checkMemory();
    }

    @Test
    void aSenderThatThisEndBlocksIsNotCutOff() throws Exception {
        connect(
                OPTIONS.withRendezvousThresholdBytes(Integer.MAX_VALUE),
                OPTIONS.withRendezvousThresholdBytes(Integer.MAX_VALUE));
        settle();
        right.setReading(false);
        left.sendPooled(50_000);
        left.connection.flush();
        settle();
        assertThat(right.buffers.tryAllocateMessage((int) Party.POOL_BYTES, NOBODY, nobodysAccount))
                .isNull();
        pass(60_000);
        assertThat(right.inactive).isZero();
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(1);
        right.buffers.forgetMessage(NOBODY);
        end();
    }

    @Test
    void aStretchLargerThanThePoolIsReadOutsideIt() throws Exception {
        MessageOptions options =
                OPTIONS.withFraming(Framing.STREAM).withMaxMessageBytes(1 << 20).withReceives(8, 1024);
        connect(options, options, 512 << 10);
        settle();
        left.sendPooled(1 << 20);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(1);
        end();
    }

    @Test
    void largeSegmentsOfAStreamAreNotCopiedForADecoderThatHoldsManyWithinItsShare() throws Exception {
        int receiveBytes = 16 << 10;
        MessageOptions options =
                MessageOptions.DEFAULTS.withFraming(Framing.STREAM).withReceives(8, receiveBytes);
        connect(options, options);
        settle();
        right.keepMessages = true;
        for (int i = 0; i < 60; i++) {
            left.sendHeap(receiveBytes - Wire.HEADER_BYTES);
            left.connection.flush();
            settle();
        }
        assertThat(right.received).isEqualTo(60);
        int shared = (int) Party.POOL_BYTES / 8 / receiveBytes;
        assertThat(right.kept.stream().limit(8 + shared)).allMatch(kept -> kept.capacity() == receiveBytes);
        assertThat(right.receivePool.metrics().usedBytes())
                .as("what is kept posted, as many that the user holds, and its share")
                .isLessThanOrEqualTo((2 * 8 + shared) * receiveBytes);
        end();
    }

    @Test
    void aReaderThatKeepsAStreamByRendezvousLeavesThePoolToOthers() throws Exception {
        MessageOptions options = OPTIONS.withFraming(Framing.STREAM).withReceives(8, 1024);
        connect(options, options, 512 << 10);
        settle();
        right.keepMessages = true;
        for (int i = 0; i < 20; i++) {
            left.sendPooled(40_000);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).as("a stream that is read arrives whole").isEqualTo(20);
        assertThat(right.receivePool.metrics().usedBytes())
                .as("an eighth of the pool, beside the receives")
                .isLessThanOrEqualTo((512 << 10) / 8 + 2 * 8 * 1024);
        end();
    }

    @Test
    void aStreamThatComesByRendezvousTakesNoMemoryThatAMessageWaitsFor() throws Exception {
        MessageOptions options = OPTIONS.withFraming(Framing.STREAM).withReceives(8, 1024);
        connect(options, options);
        settle();
        int all = (int) Party.POOL_BYTES;
        assertThat(right.buffers.tryAllocateMessage(all, NOBODY, nobodysAccount))
                .isNull();
        long usedBytes = right.receivePool.metrics().usedBytes();
        right.keepMessages = true;
        left.sendPooled(40_000);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(1);
        assertThat(right.receivePool.metrics().usedBytes()).isEqualTo(usedBytes);
        right.buffers.forgetMessage(NOBODY);
        end();
    }

    @Test
    void aMessageIsDeliveredInItsReceiveWhereNoMemoryCanBeLockedToCopyItOut() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(8, 64 << 10);
        connect(options, options);
        settle();
        right.keepMessages = true;
        for (int i = 0; i < 9; i++) {
            network.right.domain.refuses = i == 8; // when the user holds as many receives as it may
            left.sendPooled(20_000);
            left.connection.flush();
            settle();
        }
        assertThat(right.kept).hasSize(9);
        assertThat(right.kept.getLast().capacity()).isEqualTo(64 << 10);
        end();
    }

    /** Memory that is gone when it is to be copied, like that of a closed arena. */
    private static final class GoneBuf extends UnpooledHeapByteBuf {
        GoneBuf(int length) {
            super(ByteBufAllocator.DEFAULT, length, length);
            writerIndex(length);
        }

        @Override
        public ByteBuf getBytes(int index, ByteBuf dst, int dstIndex, int length) {
            throw new IllegalStateException("gone");
        }
    }

    @Test
    void aMessageThatCannotBeCopiedLeaksNothing() throws Exception {
        for (Framing framing : Framing.values()) {
            network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
            connect(OPTIONS.withFraming(framing), OPTIONS.withFraming(framing));
            settle();
            List<@Nullable Throwable> outcomes = new ArrayList<>();
            left.connection.send(new GoneBuf(200), (context, cause) -> outcomes.add(cause), null);
            left.connection.flush();
            settle();
            assertThat(outcomes).as("%s", framing).hasSize(1).doesNotContainNull();
            left.connection.close();
            settle();
            left.checkMemory();
            right.checkMemory();
        }
    }

    @Test
    void aReaderThatKeepsMessagesSlowsOnlyItself() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS
                .withReceives(8, 1024)
                .withMaxMessageBytes(100_000)
                .withRendezvousThresholdBytes(10_000);
        Crowd crowd = new Crowd(new Random(3), Device.VERBS, Device.VERBS, options, 32 << 20, 512 << 10);
        crowd.add();
        crowd.add();
        crowd.settle();
        Party keeper = crowd.rights.get(0);
        Party healthy = crowd.rights.get(1);
        keeper.keepMessages = true;
        for (int i = 0; i < 100; i++) {
            keeper.other.sendPooled(i % 2 == 0 ? 700 : 40_000);
        }
        keeper.other.connection.flush();
        crowd.settle();
        assertThat(keeper.received).isLessThan(100);
        assertThat(keeper.receivePool.metrics().usedBytes())
                .as("an eighth of the pool, or one message, beside the receives of both")
                .isLessThanOrEqualTo((512 << 10) / 8 + (40 << 10) + 4 * 8 * 1024);
        for (int i = 0; i < 100; i++) {
            healthy.other.sendPooled(i % 2 == 0 ? 700 : 40_000);
            healthy.other.connection.flush();
            crowd.settle();
            assertThat(healthy.received).isEqualTo(i + 1);
        }
        while (keeper.received < 100) {
            assertThat(keeper.kept).isNotEmpty();
            keeper.releaseKept(1);
            crowd.settle();
        }
        crowd.close();
    }

    @Test
    void aProgramThatKeepsALittleStillGetsMessagesLongerThanItsShare() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS
                .withReceives(8, 16 << 10)
                .withMaxMessageBytes(2 << 20)
                .withRendezvousThresholdBytes(32 << 10);
        connect(options, options); // whose share of 4 MiB is 512 KiB
        settle();
        keepsOneOf(64 << 10);
        left.sendPooled(1 << 20); // by rendezvous
        left.sendHeap(1 << 20); // in fragments
        left.connection.flush();
        settle();
        assertThat(right.received).as("the kept one, and one more").isEqualTo(2);
        right.kept.removeLast().release();
        settle();
        assertThat(right.received).isEqualTo(3);
        right.kept.removeLast().release();
        left.sendPooled(700);
        left.connection.flush();
        settle();
        assertThat(right.kept).as("the first, all the time, and the last").hasSize(2);
        end();
    }
}
