package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.util.IllegalReferenceCountException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.MessageClaims.Outcome;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;

/** Messages that are written into the next frame. */
@Timeout(240)
class ClaimsTest extends SimulatedPair {
    /** One receive takes 1,008 bytes of a frame behind its header: 60 messages of 12 bytes with their lengths. */
    private static final MessageOptions ROOMY = OPTIONS.withReceives(8, 1024);

    private static final int ROOM_BYTES = 1008;

    private final List<Frame> frames = new ArrayList<>();

    private MessageClaims connectedRoomy() {
        connect(ROOMY, ROOMY);
        settle();
        left.onFrameSent(frames::add);
        return left.connection.claims();
    }

    private List<String> types() {
        return frames.stream().map(Frame::type).toList();
    }

    private void claim(int messages, int bytes) {
        for (int i = 0; i < messages; i++) {
            Outcome outcome = left.claim(bytes);
            if (outcome == Outcome.BACK_PRESSURED) {
                settle();
                outcome = left.claim(bytes);
            }
            assertThat(outcome).isEqualTo(Outcome.CLAIMED);
        }
    }

    @ParameterizedTest
    @EnumSource(SendCompletion.class)
    void whatIsCommittedBeforeAFlushSharesAFrameAndIsNotCopied(SendCompletion completion) throws Exception {
        connect(ROOMY.with(o -> o.sendCompletion = completion), ROOMY);
        settle();
        int credits = left.connection.creditsAvailable();
        int slots = network.left.freeSendSlots();
        long framesBefore = left.connection.statistics().framesSent();
        long bytes = 0;
        for (int length : new int[] {0, 1, 0, 63, 64, 65, 12, 300}) {
            claim(1, length);
            bytes += length;
        }
        assertThat(left.connection.queuedBytes()).isEqualTo(bytes);
        assertThat(network.left.freeSendSlots())
                .as("nothing goes before the flush")
                .isEqualTo(slots);
        left.connection.claims().flush();
        assertThat(network.left.freeSendSlots()).isEqualTo(slots - 1);
        assertThat(left.connection.creditsAvailable()).isEqualTo(credits - 1);
        settle();
        assertThat(right.received).isEqualTo(8);
        assertThat(left.connection.statistics().framesSent()).isEqualTo(framesBefore + 1);
        assertThat(left.connection.statistics().messagesSent()).isEqualTo(8);
        assertThat(left.connection.statistics().bytesSent()).isEqualTo(bytes);
        assertThat(left.connection.statistics().copiedBytes()).isZero();
        assertThat(right.connection.statistics().messagesReceived()).isEqualTo(8);
        assertThat(left.connection.queuedBytes()).isZero();
        end();
    }

    @Test
    void oneMessageHasAnOrdinaryFrame() throws Exception {
        connectedRoomy();
        for (int length : new int[] {0, 1, 12, 500, ROOM_BYTES}) {
            claim(1, length);
            left.connection.flush();
        }
        settle();
        assertThat(types()).containsOnly("MESSAGE").hasSize(5);
        assertThat(right.received).isEqualTo(5);
        end();
    }

    /** The device copies it into the work request, and nobody waits for its completion. */
    @Test
    void aShortFrameIsFreeOnceItIsPosted() throws Exception {
        connectedRoomy();
        long before = left.sendPool.metrics().usedBytes();
        claim(1, 12);
        assertThat(left.sendPool.metrics().usedBytes()).isGreaterThan(before);
        left.connection.flush();
        assertThat(left.sendPool.metrics().usedBytes()).isEqualTo(before);
        assertThat(left.connection.queuedBytes()).isZero();
        settle();
        end();
    }

    @Test
    void aFullFrameGoesToTheDeviceBeforeTheFlush() throws Exception {
        connectedRoomy();
        claim(63, 12); // with their lengths as much as a receive takes
        assertThat(frames).isEmpty();
        claim(1, 12);
        assertThat(types()).containsExactly("PACKED");
        assertThat(frames.getFirst().frameBytes()).isEqualTo(16 + 63 * 16);
        left.connection.flush();
        assertThat(types()).containsExactly("PACKED", "MESSAGE");
        settle();
        frames.clear();
        claim(300, 0);
        left.connection.flush();
        settle();
        assertThat(frames.stream().map(Frame::detail).toList())
                .containsExactly("128 messages", "128 messages", "44 messages");
        assertThat(right.received).isEqualTo(364);
        end();
    }

    @Test
    void keepsItsPlaceAmongOrdinaryMessages() throws Exception {
        connectedRoomy();
        for (int i = 0; i < 5; i++) {
            claim(3, 12);
            left.send(10);
            left.send(2000); // in fragments
            claim(2, 100);
            left.sendPooled(10);
            left.sendPooled(20); // shares a frame with the former
            claim(1, 0);
            left.connection.flush();
        }
        settle();
        assertThat(right.received).isEqualTo(50);
        end();
    }

    /** A claim whose frame goes without it, and is over before it is committed, goes in another. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 5})
    void anOpenClaimHoldsNothingBack(int before) throws Exception {
        MessageClaims claims = connectedRoomy();
        claim(before, 100);
        assertThat(claims.tryClaim(200)).isEqualTo(Outcome.CLAIMED);
        left.sendPooled(50);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(before + 1);
        assertThat(left.connection.queuedBytes()).isZero();
        left.fillAndCommit(200);
        claim(2, 10);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(before + 4);
        end();
    }

    @Test
    void anOpenClaimIsCommittedWhileItsFrameIsUnderWay() throws Exception {
        MessageClaims claims = connectedRoomy();
        claim(5, 100);
        assertThat(claims.tryClaim(200)).isEqualTo(Outcome.CLAIMED);
        left.connection.flush(); // and the device has not sent it yet
        left.fillAndCommit(150);
        left.connection.flush();
        settle();
        assertThat(types()).containsExactly("PACKED", "MESSAGE");
        assertThat(right.received).isEqualTo(6);
        end();
    }

    @Test
    void anAbortedClaimGivesItsRoomBack() throws Exception {
        MessageClaims claims = connectedRoomy();
        long used = left.sendPool.metrics().usedBytes();
        assertThat(claims.tryClaim(ROOM_BYTES)).isEqualTo(Outcome.CLAIMED);
        claims.abort();
        claims.abort();
        assertThat(left.sendPool.metrics().usedBytes()).isEqualTo(used);
        claim(1, 500);
        assertThat(claims.tryClaim(490)).isEqualTo(Outcome.CLAIMED);
        claims.abort();
        claim(1, 490);
        assertThat(frames).isEmpty();
        assertThat(claims.tryClaim(12)).isEqualTo(Outcome.CLAIMED);
        assertThat(frames).as("it was full").hasSize(1);
        left.connection.flush();
        claims.abort();
        claims.flush();
        settle();
        assertThat(types()).containsExactly("PACKED");
        assertThat(right.received).isEqualTo(2);
        end();
    }

    @Test
    void aShorterMessageLeavesItsRoomToTheNext() throws Exception {
        MessageClaims claims = connectedRoomy();
        for (int i = 0; i < 20; i++) {
            assertThat(claims.tryClaim(900)).isEqualTo(Outcome.CLAIMED);
            left.fillAndCommit(2);
        }
        left.connection.flush();
        settle();
        assertThat(frames.stream().map(Frame::detail).toList()).containsExactly("18 messages", "2 messages");
        assertThat(right.received).isEqualTo(20);
        end();
    }

    @Test
    void aReaderThatStopsStopsTheClaims() throws Exception {
        connectedRoomy();
        right.setReading(false);
        int claimed = 0;
        while (left.claim(100) == Outcome.CLAIMED) {
            claimed++;
            settle();
        }
        assertThat(claimed).as("the window's frames and one that waits").isBetween(7, 7 * 9);
        assertThat(left.connection.isWritable()).isFalse();
        assertThat(left.lastWritable).isFalse();
        assertThat(left.claim(100)).isEqualTo(Outcome.BACK_PRESSURED);
        settle();
        int[] more = {1000};
        left.whim = () -> {
            while (more[0] > 0 && Boolean.TRUE.equals(left.lastWritable) && left.claim(100) == Outcome.CLAIMED) {
                more[0]--;
            }
            left.connection.flush();
        };
        right.setReading(true);
        settle();
        assertThat(more[0]).isZero();
        assertThat(right.received).isEqualTo(claimed + 1000);
        assertThat(left.connection.isWritable()).isTrue();
        end();
    }

    /** The connection waits for nothing then that would tell of memory, so it tries again. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void waitsForMemory(boolean packed) throws Exception {
        packs = packed;
        connect(ROOMY, ROOMY);
        settle();
        List<ByteBuf> all = new ArrayList<>();
        for (int bytes = 256 << 10; bytes >= 64; bytes /= 2) {
            ByteBuf next = left.sendPool.tryAllocate(bytes, bytes);
            while (next != null) {
                all.add(next);
                next = left.sendPool.tryAllocate(bytes, bytes);
            }
        }
        assertThat(left.claim(900)).isEqualTo(Outcome.BACK_PRESSURED);
        assertThat(left.lastWritable).isFalse();
        pass(100);
        assertThat(left.lastWritable).isFalse();
        assertThat(left.claim(900)).isEqualTo(Outcome.BACK_PRESSURED);
        all.forEach(ByteBuf::release);
        pass(100);
        assertThat(left.lastWritable).isTrue();
        claim(3, 900);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(3);
        end();
    }

    @Test
    void closingSendsWhatWasCommitted() throws Exception {
        MessageClaims claims = connectedRoomy();
        claim(100, 12);
        assertThat(claims.tryClaim(12)).isEqualTo(Outcome.CLAIMED);
        left.connection.close();
        assertThat(claims.commit()).isFalse();
        assertThat(claims.tryClaim(12)).isEqualTo(Outcome.CLOSED);
        settle();
        assertThat(right.received).isEqualTo(100);
        assertThat(left.inactiveCause).isNull();
        assertThat(claims.tryClaim(12)).isEqualTo(Outcome.CLOSED);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void whatWaitsIsGivenUpWhenThePeerCloses() throws Exception {
        MessageClaims claims = connectedRoomy();
        right.setReading(false);
        while (left.claim(500) == Outcome.CLAIMED) {
            settle();
        }
        right.connection.close();
        settle();
        assertThat(left.inactive).isEqualTo(1);
        assertThat(left.inactiveCause).isNull();
        assertThat(claims.tryClaim(1)).isEqualTo(Outcome.CLOSED);
        left.checkMemory();
        right.checkMemory();
    }

    /** With a claim open: alone, in a frame that waits, and in a frame that the device has. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void aLostConnectionEndsTheOpenClaim(int where) throws Exception {
        MessageClaims claims = connectedRoomy();
        claim(where == 0 ? 0 : 5, 100);
        assertThat(claims.tryClaim(100)).isEqualTo(Outcome.CLAIMED);
        claims.buffer().writeLong(1);
        if (where == 2) {
            left.connection.flush();
        }
        network.left.loseConnection(new ConnectionException.Lost("pulled out"));
        settle();
        assertThat(left.inactive).isEqualTo(1);
        assertThatThrownBy(() -> claims.buffer().writeLong(1)).isInstanceOf(IllegalReferenceCountException.class);
        assertThat(claims.commit()).isFalse();
        claims.abort();
        claims.flush();
        assertThat(claims.tryClaim(1)).isEqualTo(Outcome.CLOSED);
        right.connection.abort(null);
        settle();
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void aRefusedFrameEndsTheConnection() throws Exception {
        connectedRoomy();
        RuntimeException refusal = new IllegalArgumentException("not that one");
        network.left.onPost = request -> {
            throw refusal;
        };
        claim(3, 100);
        left.connection.flush();
        settle();
        assertThat(left.inactiveCause).isSameAs(refusal);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void aFrameThatTheEndpointDoesNotTakeGoesLater() throws Exception {
        connectedRoomy();
        network.left.refusals = 1;
        claim(5, 100);
        left.connection.flush();
        assertThat(types()).isEmpty();
        claim(2, 10);
        left.connection.flush();
        settle();
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(7);
        end();
    }

    @Test
    void aPeerWithoutSuchFramesGetsOneForEachMessage() throws Exception {
        packs = false;
        connectedRoomy();
        for (int length : new int[] {0, 1, 12, 500, ROOM_BYTES}) {
            claim(1, length);
        }
        left.connection.flush();
        settle();
        assertThat(types()).containsOnly("MESSAGE").hasSize(5);
        assertThat(right.received).isEqualTo(5);
        end();
    }

    @Test
    void refusesWhatCannotBe() throws Exception {
        connect(ROOMY, ROOMY.withMaxMessageBytes(600));
        MessageClaims claims = left.connection.claims();
        assertThat(claims.maxBytes()).isZero();
        assertThat(claims.tryClaim(1)).as("before both ends have agreed").isEqualTo(Outcome.BACK_PRESSURED);
        settle();
        assertThat(claims.maxBytes()).isEqualTo(600);
        assertThat(right.connection.claims().maxBytes()).isEqualTo(ROOM_BYTES);
        assertThatThrownBy(() -> claims.tryClaim(601)).isInstanceOf(MessageTooLargeException.class);
        assertThatThrownBy(() -> claims.tryClaim(-1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(claims::commit).isInstanceOf(IllegalStateException.class);
        claim(1, 600);
        assertThat(claims.tryClaim(10)).isEqualTo(Outcome.CLAIMED);
        assertThatThrownBy(() -> claims.tryClaim(10)).isInstanceOf(IllegalStateException.class);
        left.fillAndCommit(10);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(2);
        end();
    }

    @ParameterizedTest
    @EnumSource(value = Framing.class, names = "MESSAGE", mode = EnumSource.Mode.EXCLUDE)
    void otherFramingsHaveNoClaims(Framing framing) {
        connect(OPTIONS.withFraming(framing), OPTIONS.withFraming(framing));
        assertThatThrownBy(left.connection::claims).isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void theBufferIsThatOfTheClaimOnly() throws Exception {
        MessageClaims claims = connectedRoomy();
        claim(2, 16);
        assertThat(claims.tryClaim(16)).isEqualTo(Outcome.CLAIMED);
        ByteBuf buffer = claims.buffer();
        assertThat(buffer.readableBytes()).isZero();
        assertThat(buffer.capacity()).isEqualTo(16);
        assertThatThrownBy(() -> buffer.setLong(-8, -1)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> buffer.setLong(9, -1)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> buffer.writeZero(17)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> buffer.capacity(17)).isInstanceOf(IllegalArgumentException.class);
        assertThat(buffer.retain().release()).isFalse();
        assertThat(buffer.refCnt()).isEqualTo(1);
        ByteBuf slice = buffer.slice(0, 8);
        buffer.setZero(0, 16);
        slice.setLong(0, 4711);
        assertThat(buffer.getLong(0)).isEqualTo(4711);
        assertThat(buffer.getLongLE(0)).isEqualTo(Long.reverseBytes(4711));
        ByteBuf copy = buffer.copy(0, 8);
        assertThat(copy.readLong()).isEqualTo(4711);
        copy.release();
        assertThat(buffer.nioBuffer(0, 8).getLong()).isEqualTo(4711);
        left.fillAndCommit(16);
        assertThat(buffer.refCnt()).isZero();
        assertThatThrownBy(() -> buffer.getByte(0)).isInstanceOf(IllegalReferenceCountException.class);
        assertThatThrownBy(() -> slice.getByte(0)).isInstanceOf(IllegalReferenceCountException.class);
        claim(1, 16);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(4);
        end();
    }

    /** Whoever watches the frames must not change them. */
    @Test
    void aClaimWithinThePostingOfItsFrameIsRefused() throws Exception {
        connect(ROOMY, ROOMY);
        settle();
        List<Outcome> outcomes = new ArrayList<>();
        left.onFrameSent(frame -> {
            if (outcomes.isEmpty()) {
                outcomes.add(left.claim(12));
                left.connection.flushNow();
            }
        });
        claim(3, 12);
        left.connection.flush();
        settle();
        assertThat(outcomes).containsExactly(Outcome.BACK_PRESSURED);
        assertThat(left.lastWritable).isTrue();
        claim(3, 12);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(6);
        end();
    }

    @Test
    void whatAListenerSendsWithinThePostingOfPackedMessagesArrives() throws Exception {
        connect(ROOMY, ROOMY);
        settle();
        boolean[] once = new boolean[1];
        left.onFrameSent(frame -> {
            if (!once[0]) {
                once[0] = true;
                left.sendHeap(12);
            }
        });
        left.sendHeap(12);
        left.sendHeap(12);
        left.connection.flush();
        settle();
        left.connection.flush();
        settle();
        assertThat(once[0]).isTrue();
        assertThat(right.received).isEqualTo(3);
        assertThat(left.succeeded).isEqualTo(3);
        end();
    }

    /** A receive of 64 bytes has room for 48. */
    @Test
    void theSmallestReceives() throws Exception {
        for (int seed = 1; seed < 20; seed++) {
            network = new SimulatedNetwork(new Random(seed), Device.IWARP, Device.VERBS);
            connect(OPTIONS.withReceives(8, 64), OPTIONS.withReceives(8, 64));
            settle();
            Random random = new Random(seed);
            for (int i = 0; i < 200; i++) {
                if (left.claim(random.nextInt(49)) == Outcome.BACK_PRESSURED) {
                    settle();
                }
            }
            left.connection.flush();
            settle();
            assertThat(right.received).isEqualTo(left.sent);
            end();
        }
    }
}
