package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.spi.WorkRequest;

/** Frames that an endpoint copies at once: without work requests, and done once they have gone. */
@Timeout(240)
class CopiedFramesTest extends SimulatedPair {
    private static final MessageOptions ROOMY = OPTIONS.withReceives(8, 8192);

    private final List<Frame> frames = new ArrayList<>();
    private final List<WorkRequest.Opcode> posted = new ArrayList<>();

    @BeforeEach
    void copies() {
        network.left.copies = true;
        network.right.copies = true;
    }

    private void connectWith(MessageOptions options) {
        connect(options, options);
        settle();
        network.left.copied = 0;
        network.left.onPost = request -> posted.add(request.opcode());
        left.onFrameSent(frames::add);
    }

    private List<String> types() {
        return frames.stream().map(Frame::type).toList();
    }

    @ParameterizedTest
    @EnumSource(value = Framing.class, names = "RAW", mode = EnumSource.Mode.EXCLUDE)
    void aShortMessageIsDoneWhenItIsFlushed(Framing framing) throws Exception {
        connectWith(ROOMY.withFraming(framing));
        int slots = network.left.freeSendSlots();
        int credits = left.connection.creditsAvailable();
        int[] lengths = {1, 47, 48, 49, 100, 4096};
        for (int i = 0; i < lengths.length; i++) {
            left.send(lengths[i]);
            assertThat(left.told).as("before the flush").isEqualTo(i);
            left.connection.flush();
            assertThat(left.succeeded).isEqualTo(i + 1);
        }
        assertThat(posted).isEmpty();
        assertThat(network.left.copied).isEqualTo(lengths.length);
        assertThat(network.left.freeSendSlots()).isEqualTo(slots);
        assertThat(left.connection.creditsAvailable()).isEqualTo(credits - lengths.length);
        assertThat(left.connection.queuedBytes()).isZero();
        assertThat(left.connection.isWritable()).isTrue();
        settle();
        assertThat(right.received).isEqualTo(lengths.length);
        assertThat(types()).containsOnly("MESSAGE").hasSize(lengths.length);
        assertThat(frames.get(5).toString()).startsWith("MESSAGE 4096 of 4096 bytes [grant ");
        MessageStatistics statistics = left.connection.statistics();
        assertThat(statistics.messagesSent()).isEqualTo(lengths.length);
        assertThat(statistics.bytesSent()).isEqualTo(1 + 47 + 48 + 49 + 100 + 4096);
        end();
    }

    @ParameterizedTest
    @EnumSource(value = Framing.class, names = "RAW", mode = EnumSource.Mode.EXCLUDE)
    void whatIsFlushedTogetherIsCopiedTogether(Framing framing) throws Exception {
        connectWith(ROOMY.withFraming(framing));
        long memory = left.sendPool.metrics().usedBytes();
        for (int i = 0; i < 20; i++) {
            left.sendPooled(60);
        }
        left.connection.flush();
        assertThat(left.succeeded).isEqualTo(20);
        assertThat(left.sendPool.metrics().usedBytes()).isEqualTo(memory);
        assertThat(network.left.copied).isEqualTo(1);
        assertThat(posted).isEmpty();
        settle();
        assertThat(right.received).isEqualTo(20);
        end();
    }

    @Test
    void aMessageThatTheEndpointDoesNotCopyIsPosted() throws Exception {
        connectWith(ROOMY);
        left.sendPooled(4097);
        left.connection.flush();
        assertThat(posted).containsExactly(WorkRequest.Opcode.SEND);
        network.left.refusals = 1;
        left.sendPooled(64);
        left.connection.flush();
        assertThat(posted).hasSize(2);
        assertThat(left.told).isZero();
        settle();
        assertThat(network.left.copied).isZero();
        left.sendPooled(64);
        left.connection.flush();
        assertThat(network.left.copied).isEqualTo(1);
        settle();
        assertThat(right.received).isEqualTo(3);
        assertThat(left.succeeded).isEqualTo(3);
        end();
    }

    /** What is copied behind a message whose outcome is not known is reported after it. */
    @Test
    void outcomesComeInTheOrderSent() throws Exception {
        connectWith(ROOMY);
        left.sendPooled(5000);
        left.connection.flush();
        left.sendPooled(64);
        left.connection.flush();
        assertThat(network.left.copied).isEqualTo(1);
        assertThat(left.told).isZero();
        settle();
        assertThat(left.succeeded).isEqualTo(2);
        end();
    }

    @Test
    void aLossFailsWhatFollowsALostMessage() throws Exception {
        connectWith(ROOMY);
        left.sendPooled(64);
        left.connection.flush();
        left.sendPooled(5000);
        left.connection.flush();
        left.sendPooled(64);
        left.connection.flush();
        network.left.loseConnection(new ConnectionException.Lost("the path broke"));
        settle();
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(left.failures).hasSize(2);
        left.checkMemory();
    }

    /** As a TCP does that has no room: what it has not taken is not sent, and is lost with the connection. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aMessageIsNotDoneBeforeItHasGone(boolean isLost) throws Exception {
        connectWith(ROOMY);
        left.sendPooled(64);
        left.connection.flush();
        assertThat(left.succeeded).isEqualTo(1);
        network.left.copiesKept = true;
        left.sendPooled(64);
        left.sendPooled(5000);
        left.connection.flush();
        left.sendPooled(64);
        left.connection.flush();
        assertThat(left.told).isEqualTo(1);
        assertThat(left.connection.queuedBytes()).isEqualTo(64 + 5000 + 64);
        if (isLost) {
            network.left.loseConnection(new ConnectionException.Lost("the path broke"));
            settle();
            assertThat(left.succeeded).isEqualTo(1);
            assertThat(left.failures).hasSize(3);
            left.checkMemory();
        } else {
            network.left.sendCopies();
            settle();
            assertThat(left.succeeded).isEqualTo(4);
            assertThat(right.received).isEqualTo(4);
            end();
        }
    }

    /** A message that went as a work request is done when that is, whatever is copied behind it. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatWentBeforeDoesNotWaitForCopies(boolean isLost) throws Exception {
        connectWith(ROOMY);
        left.sendPooled(5000);
        left.connection.flush();
        network.left.copiesKept = true;
        network.left.copiesHeld = true;
        left.sendPooled(64);
        left.connection.flush();
        settle();
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(left.told).isEqualTo(1);
        if (isLost) {
            network.left.loseConnection(new ConnectionException.Lost("the path broke"));
            settle();
            assertThat(left.succeeded).isEqualTo(1);
            assertThat(left.failures).hasSize(1);
            left.checkMemory();
        } else {
            network.left.sendCopies();
            settle();
            assertThat(left.succeeded).isEqualTo(2);
            end();
        }
    }

    /** Who waits for no more than the copy does not wait for the endpoint. */
    @Test
    void aMessageThatIsDoneWhenPostedIsDoneWhenCopied() throws Exception {
        connectWith(ROOMY.with(o -> o.sendCompletion = SendCompletion.POSTED));
        network.left.copiesKept = true;
        network.left.copiesHeld = true;
        left.sendPooled(64);
        left.connection.flush();
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(network.left.copied).isEqualTo(1);
        network.left.loseConnection(new ConnectionException.Lost("the path broke"));
        settle();
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(left.failures).isEmpty();
        left.checkMemory();
    }

    /** A flush between two frames says nothing about the second. */
    @Test
    void aListenerOfFramesMayFlush() throws Exception {
        packs = false;
        connectWith(ROOMY);
        left.onFrameSent(frame -> {
            left.connection.flushNow();
            network.left.copiesKept = true;
            network.left.copiesHeld = true;
        });
        left.sendPooled(64);
        left.sendPooled(64);
        left.connection.flush();
        assertThat(network.left.copied).isEqualTo(2);
        assertThat(left.succeeded).isLessThan(2);
        left.connection.setFrameListener(null);
        network.left.copiesHeld = false;
        settle();
        assertThat(left.succeeded).isEqualTo(2);
        assertThat(right.received).isEqualTo(2);
        end();
    }

    @Test
    void closingSendsWhatIsQueued() throws Exception {
        connectWith(ROOMY);
        left.sendPooled(64);
        left.connection.close();
        settle();
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(right.received).isEqualTo(1);
        assertThat(types()).containsExactly("MESSAGE", "CLOSE");
        assertThat(left.inactiveCause).isNull();
        assertThat(right.inactiveCause).isNull();
        left.checkMemory();
        right.checkMemory();
    }

    /** Whoever closes waits for it. */
    @Test
    void closingWaitsForWhatHasNotGone() throws Exception {
        connectWith(ROOMY);
        network.left.copiesKept = true;
        left.sendPooled(64);
        left.connection.flush();
        left.connection.close();
        assertThat(types()).doesNotContain("CLOSE");
        network.left.sendCopies();
        settle();
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(types()).endsWith("CLOSE");
        assertThat(left.inactive).isEqualTo(1);
        assertThat(right.inactive).isEqualTo(1);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void countsAsCopiedOnlyWhatIsNotInRegisteredMemory() throws Exception {
        packs = false;
        connectWith(ROOMY);
        left.sendPooled(1000);
        left.connection.flush();
        assertThat(left.connection.statistics().copiedBytes()).isZero();
        left.sendHeap(1000);
        left.connection.flush();
        assertThat(left.connection.statistics().copiedBytes()).isEqualTo(1000);
        left.sendSges(List.of(left.sendPool.allocate(30), Unpooled.directBuffer(20)));
        left.connection.flush();
        assertThat(left.connection.statistics().copiedBytes()).isEqualTo(1050);
        assertThat(network.left.copied).isEqualTo(3);
        settle();
        assertThat(right.received).isEqualTo(3);
        end();
    }

    /** A message that cannot be read fails by itself. */
    @Test
    void aMessageThatCannotBeReadFailsAlone() throws Exception {
        connectWith(ROOMY);
        List<Throwable> outcomes = new ArrayList<>();
        left.connection.send(new Unreadable(), (context, cause) -> outcomes.add(cause), null);
        left.connection.flush();
        assertThat(outcomes).hasSize(1);
        assertThat(outcomes.getFirst()).isInstanceOf(IllegalStateException.class);
        left.sendPooled(64);
        left.connection.flush();
        assertThat(left.succeeded).isEqualTo(1);
        settle();
        assertThat(right.received).isEqualTo(1);
        end();
    }

    private static final class Unreadable extends UnpooledHeapByteBuf {
        Unreadable() {
            super(UnpooledByteBufAllocator.DEFAULT, 64, 64);
            writeZero(64);
        }

        @Override
        public ByteBuf getBytes(int index, ByteBuffer target) {
            throw new IllegalStateException("it cannot be read");
        }
    }

    /** The peer gets the same frames as from an endpoint that is given work requests. */
    @Test
    void thePeerSeesNoDifference() throws Exception {
        List<String> with = framesOfARun(true);
        frames.clear();
        network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
        assertThat(framesOfARun(false)).isEqualTo(with);
    }

    private List<String> framesOfARun(boolean copying) throws Exception {
        network.left.copies = copying;
        network.right.copies = copying;
        connectWith(ROOMY);
        for (int i = 0; i < 30; i++) {
            for (int j = 0; j <= i % 4; j++) {
                left.sendPooled(i * 7 + j);
            }
            left.connection.flush();
            settle();
        }
        assertThat(right.received).isEqualTo(left.sent);
        List<String> result = frames.stream()
                .filter(frame -> frame.messageBytes() > 0)
                .map(frame -> frame.type() + " " + frame.frameBytes() + " " + frame.detail())
                .toList();
        assertThat(result).hasSize(30 - 1); // the first is empty
        end();
        return result;
    }
}
