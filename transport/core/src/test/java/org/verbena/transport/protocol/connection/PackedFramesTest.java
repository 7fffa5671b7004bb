package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** Frames that carry several messages. */
@Timeout(240)
class PackedFramesTest extends SimulatedPair {
    /** One receive takes 60 messages of 12 bytes. */
    private static final MessageOptions ROOMY = OPTIONS.withReceives(8, 1024);

    private final List<Frame> frames = new ArrayList<>();

    private void connectedRoomy() {
        connect(ROOMY, ROOMY);
        settle();
        listen();
    }

    private void listen() {
        frames.clear();
        left.onFrameSent(frames::add);
    }

    private List<String> types() {
        return frames.stream().map(Frame::type).toList();
    }

    private void send(int messages, int bytes) {
        for (int i = 0; i < messages; i++) {
            left.sendPooled(bytes);
        }
    }

    @Test
    void whatIsFlushedTogetherSharesAFrameAGrantAndAWorkRequest() throws Exception {
        connectedRoomy();
        int before = left.connection.creditsAvailable();
        int slots = network.left.freeSendSlots();
        int[] lengths = {0, 1, 0, 63, 64, 65, 12, 300};
        long bytes = 0;
        for (int length : lengths) {
            left.send(length);
            bytes += length;
        }
        left.connection.flush();
        assertThat(network.left.freeSendSlots()).isEqualTo(slots - 1);
        assertThat(left.connection.creditsAvailable()).isEqualTo(before - 1);
        assertThat(left.told).as("what the device has not sent").isZero();
        settle();
        assertThat(types()).containsExactly("PACKED");
        assertThat(frames.getFirst().toString()).startsWith("PACKED " + bytes + " bytes, 8 messages [grant ");
        assertThat(right.received).isEqualTo(lengths.length);
        assertThat(left.succeeded).isEqualTo(lengths.length);
        assertThat(left.connection.statistics().messagesSent()).isEqualTo(lengths.length);
        assertThat(left.connection.statistics().bytesSent()).isEqualTo(bytes);
        assertThat(left.connection.statistics().copiedBytes()).isZero();
        assertThat(right.connection.statistics().messagesReceived()).isEqualTo(lengths.length);
        assertThat(right.connection.statistics().bytesReceived()).isEqualTo(bytes);
        assertThat(left.connection.queuedBytes()).isZero();
        end();
    }

    @Test
    void veryShortOnesNeedNoMemoryBesidesTheHeaders() throws Exception {
        connectedRoomy();
        long before = left.sendPool.metrics().usedBytes();
        for (int i = 0; i < 4; i++) {
            left.sendHeap(8);
        }
        left.connection.flush();
        assertThat(left.sendPool.metrics().usedBytes()).isEqualTo(before);
        settle();
        assertThat(types()).containsExactly("PACKED");
        assertThat(right.received).isEqualTo(4);
        end();
    }

    @Test
    void aMessageAloneHasAFrameOfTheOldKind() throws Exception {
        connectedRoomy();
        for (int i = 0; i < 5; i++) {
            send(1, 12);
            left.connection.flush();
        }
        settle();
        assertThat(types()).containsExactly("MESSAGE", "MESSAGE", "MESSAGE", "MESSAGE", "MESSAGE");
        assertThat(left.connection.statistics().copiedBytes()).isZero();
        end();
    }

    @Test
    void aFrameHasNoMoreThanThePeersReceiveTakesAnd128Messages() throws Exception {
        connectedRoomy();
        send(64, 12);
        left.connection.flush();
        settle();
        assertThat(types()).containsExactly("PACKED", "MESSAGE");
        assertThat(frames.getFirst().frameBytes()).isEqualTo(16 + 63 * 16);
        listen();
        send(2 * Wire.MAX_PACKED + 2, 0);
        left.connection.flush();
        settle();
        assertThat(types()).containsExactly("PACKED", "PACKED", "PACKED");
        assertThat(frames.get(1).detail()).isEqualTo(Wire.MAX_PACKED + " messages");
        assertThat(right.received).isEqualTo(left.sent);
        end();
    }

    @Test
    void whatWaitsForAGrantGoesTogether() throws Exception {
        connectedRoomy();
        right.setReading(false);
        for (int i = 0; i < 66; i++) {
            send(1, 12);
            left.connection.flush();
        }
        settle();
        assertThat(left.told).isEqualTo(6);
        assertThat(left.connection.isWritable()).isFalse();
        listen();
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(66);
        assertThat(types()).containsOnlyOnce("PACKED").doesNotContain("MESSAGE");
        assertThat(left.connection.isWritable()).isTrue();
        end();
    }

    @Test
    void aReaderThatStopsStopsTheSenderAfterAWindowOfFrames() throws Exception {
        connectedRoomy();
        right.setReading(false);
        for (int i = 0; i < 10; i++) {
            send(60, 12);
            left.connection.flush();
        }
        settle();
        assertThat(left.told).as("six frames").isEqualTo(360);
        assertThat(right.connection.statistics().creditsGranted()).isZero();
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(600);
        end();
    }

    @Test
    void aReaderGetsNoMoreThanItReadsOfAFrame() throws Exception {
        connectedRoomy();
        right.whim = () -> right.setReading(false);
        send(20, 12);
        left.connection.flush();
        settle();
        assertThat(left.told).isEqualTo(20);
        for (int i = 1; i < 20; i++) {
            assertThat(right.received).isEqualTo(i);
            assertThat(right.connection.statistics().creditsGranted())
                    .as("a receive has the rest")
                    .isEqualTo(5);
            right.setReading(true);
            settle();
        }
        assertThat(right.received).isEqualTo(20);
        right.whim = () -> {};
        right.setReading(true);
        settle();
        assertThat(right.connection.statistics().creditsGranted()).isEqualTo(6);
        end();
    }

    /** What is behind the frame waits for the rest of it. */
    @Test
    void aReaderThatStopsWithinAFrameLosesNothingOfThoseBehind() throws Exception {
        connectedRoomy();
        right.whim = () -> right.setReading(false);
        for (int i = 0; i < 3; i++) {
            send(3, 12);
            send(1, 2000); // in fragments
            left.connection.flush();
        }
        settle();
        for (int i = 0; i < 12; i++) {
            right.setReading(true);
            settle();
        }
        assertThat(right.received).isEqualTo(12);
        end();
    }

    @Test
    void aMessageThatIsKeptHoldsNoReceive() throws Exception {
        connectedRoomy();
        right.keepMessages = true;
        for (int i = 0; i < 20; i++) {
            send(10, 12);
            left.connection.flush();
            settle();
        }
        assertThat(right.kept)
                .hasSize(200)
                .allSatisfy(message -> assertThat(message.capacity()).isEqualTo(12));
        assertThat(right.connection.statistics().creditsGranted()).isPositive();
        end();
    }

    /** Beyond the connection's share messages are slices, and their receives count against the window. */
    @Test
    void whoKeepsMoreThanItsShareHoldsReceives() throws Exception {
        connect(ROOMY, ROOMY, 256 << 10); // of which an eighth is the share
        settle();
        right.keepMessages = true;
        for (int i = 0; i < 200; i++) {
            send(2, 500);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).isBetween(60, 100);
        assertThat(right.kept.getLast().capacity()).as("a slice").isEqualTo(500);
        assertThat(right.kept.getLast().unwrap()).isNotNull();
        assertThat(left.connection.isWritable()).isFalse();
        assertThat(right.connection.statistics().creditsGranted()).isZero();
        int received = right.received;
        right.kept.removeLast().release(); // the other half of its frame is still held
        settle();
        assertThat(right.received).isEqualTo(received);
        while (right.received < 400) {
            right.releaseKept(10);
            settle();
        }
        assertThat(left.succeeded).isEqualTo(400);
        end();
    }

    /** What ends the delivery within a frame. */
    static Stream<Arguments> ends() {
        return Stream.of(
                Arguments.of("close", (Consumer<Party>) party -> party.connection.close()),
                Arguments.of("abort", (Consumer<Party>) party -> party.connection.abort(null)),
                Arguments.of("exception", (Consumer<Party>) party -> {
                    throw new IllegalStateException("a bug of the user's");
                }));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("ends")
    void anEndWithinAFrameLeaksNothing(String name, Consumer<Party> end) throws Exception {
        for (boolean keeps : new boolean[] {false, true}) {
            network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
            connect(ROOMY, ROOMY, 256 << 10);
            settle();
            right.keepMessages = keeps;
            send(400, 60); // more than the share holds
            left.connection.flush();
            right.whim = () -> {
                if (right.received == 350 && right.inactive == 0) {
                    right.whim = () -> {};
                    end.accept(right);
                }
            };
            settle();
            if (keeps) {
                while (right.inactive == 0 && !right.kept.isEmpty()) {
                    right.releaseKept(5);
                    settle();
                }
            }
            assertThat(right.received).isEqualTo(350);
            assertThat(right.inactive).isEqualTo(1);
            assertThat(left.inactive).isEqualTo(1);
            assertThat(left.told).isEqualTo(400);
            left.checkMemory();
            right.checkMemory();
        }
    }

    /** A message that failed at once lies between them in the order of outcomes, and takes nobody else's. */
    @Test
    void aMessageOverTheLimitBetweenShortOnesFailsAlone() throws Exception {
        for (boolean isActive : new boolean[] {false, true}) {
            network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
            connect(ROOMY, ROOMY.withMaxMessageBytes(500));
            listen();
            if (isActive) {
                settle();
                frames.clear();
            }
            List<@Nullable Throwable> refused = new ArrayList<>();
            for (int length : new int[] {10, 20, 501, 30, 40, 600, 50}) {
                if (length <= 500) {
                    left.sendPooled(length);
                } else {
                    left.connection.send(
                            Unpooled.buffer().writeZero(length), (context, cause) -> refused.add(cause), null);
                }
            }
            left.connection.flush();
            settle();
            assertThat(types()).endsWith("PACKED", "PACKED", "MESSAGE");
            assertThat(refused).hasSize(2).hasOnlyElementsOfType(MessageTooLargeException.class);
            assertThat(right.received).isEqualTo(5);
            assertThat(left.succeeded).isEqualTo(5);
            end();
        }
    }

    /** The program has released it, say, or closed the arena of its memory. */
    @Test
    void aMessageThatCannotBeReadFailsAlone() throws Exception {
        connectedRoomy();
        List<@Nullable Throwable> refused = new ArrayList<>();
        left.sendPooled(10);
        left.sendPooled(20);
        left.connection.send(new Unreadable(30), (context, cause) -> refused.add(cause), null);
        left.sendPooled(40);
        left.sendPooled(50);
        left.connection.flush();
        settle();
        assertThat(refused).hasSize(1).hasOnlyElementsOfType(IllegalStateException.class);
        assertThat(right.received).isEqualTo(4);
        assertThat(left.succeeded).isEqualTo(4);
        end();
    }

    private static final class Unreadable extends UnpooledHeapByteBuf {
        Unreadable(int lengthBytes) {
            super(UnpooledByteBufAllocator.DEFAULT, lengthBytes, lengthBytes);
            writeZero(lengthBytes);
        }

        @Override
        public ByteBuf getBytes(int index, ByteBuf target, int targetIndex, int length) {
            throw new IllegalStateException("it cannot be read");
        }
    }

    /** Reads, writes and atomics keep their place among the messages. */
    @Test
    void aWriteBetweenMessagesIsNotOvertaken() throws Exception {
        connectedRoomy();
        try (Arena arena = Arena.ofShared()) {
            Set<Access> all = Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
            RegisteredMemory there = right.endpoint.domain.register(arena.allocate(64, 8), all);
            RegisteredMemory here = left.endpoint.domain.register(arena.allocate(64, 8), all);
            List<WorkRequest.Opcode> posted = new ArrayList<>();
            network.left.onPost = request -> posted.add(request.opcode());
            send(2, 12);
            left.connection
                    .oneSided()
                    .write(
                            there.address(),
                            there.remoteKey(),
                            new ScatterGatherList(1).add(here, 0, 64),
                            null,
                            left::oneSidedTold,
                            null);
            send(2, 12);
            left.connection.flush();
            settle();
            assertThat(posted).startsWith(WorkRequest.Opcode.SEND, WorkRequest.Opcode.WRITE, WorkRequest.Opcode.SEND);
            assertThat(types()).startsWith("PACKED", "PACKED");
            assertThat(right.received).isEqualTo(4);
            there.close();
            here.close();
        }
        end();
    }

    @Test
    void aFrameThatTheEndpointDoesNotTakeGoesLater() throws Exception {
        connectedRoomy();
        network.left.refusals = 1;
        send(5, 100);
        left.connection.flush();
        assertThat(types()).isEmpty();
        send(5, 12);
        left.connection.flush();
        settle();
        assertThat(types()).containsExactly("PACKED");
        assertThat(right.received).isEqualTo(10);
        assertThat(left.succeeded).isEqualTo(10);
        end();
    }

    @Test
    void aMessageThatTheEndpointRefusesFailsAndTheOthersGo() throws Exception {
        connectedRoomy();
        RuntimeException refusal = new IllegalArgumentException("not that one");
        boolean[] refused = {false};
        network.left.onPost = request -> {
            if (!refused[0]) {
                refused[0] = true;
                throw refusal;
            }
        };
        List<@Nullable Throwable> outcomes = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            left.connection.send(Unpooled.buffer().writeZero(0), (context, cause) -> outcomes.add(cause), null);
        }
        left.sizes.addAll(List.of(0, 0, 0));
        left.connection.flush();
        settle();
        assertThat(outcomes).containsExactly(refusal, null, null, null);
        assertThat(right.received).isEqualTo(3);
        end();
    }

    @Test
    void allMessagesOfAFrameFailWithIt() throws Exception {
        connectedRoomy();
        network.left.failNextSend = WorkStatus.TRANSPORT_RETRY_EXCEEDED;
        send(20, 12);
        left.connection.flush();
        settle();
        assertThat(left.told).isEqualTo(20);
        assertThat(left.failures)
                .hasSize(20)
                .allSatisfy(cause -> assertThat(cause).isInstanceOf(WorkCompletionException.class));
        assertThat(left.inactive).isEqualTo(1);
        right.connection.abort(null);
        settle();
        left.checkMemory();
        right.checkMemory();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anEndThatDoesNotPackGetsAndSendsOneMessageInAFrame(boolean isLeft) throws Exception {
        left = Party.of("left", Role.INITIATOR, network.left, ROOMY);
        right = Party.of("right", Role.ACCEPTOR, network.right, ROOMY);
        left.other = right;
        right.other = left;
        (isLeft ? left : right).connection.packNothing();
        byte[] data = PrivateData.of(ROOMY);
        network.connect(left.connection, data, right.connection, data);
        settle();
        long leftFrames = left.connection.statistics().framesSent();
        send(4, 12);
        left.connection.flush();
        settle();
        assertThat(left.connection.statistics().framesSent()).isEqualTo(leftFrames + 4);
        long rightFrames = right.connection.statistics().framesSent();
        for (int i = 0; i < 4; i++) {
            right.sendPooled(12);
        }
        right.connection.flush();
        settle();
        assertThat(right.connection.statistics().framesSent()).isEqualTo(rightFrames + 4);
        end();
    }

    private static Arguments wrong(String name, Consumer<Rogue> frames) {
        return Arguments.of(name, frames);
    }

    /** Receives have 1024 bytes here, and messages up to 200. */
    static Stream<Arguments> wrongFrames() {
        int tooMany = Wire.MAX_PACKED + 1;
        return Stream.of(
                wrong("no messages", rogue -> rogue.packed(0, 0)),
                wrong("no messages, with bytes", rogue -> rogue.packed(0, 40)),
                wrong("one message", rogue -> rogue.packed(1, 5, 5)),
                wrong("too many", rogue -> rogue.packed(tooMany, 4 * tooMany)),
                wrong("more than there are lengths for", rogue -> rogue.packed(60, 239)),
                wrong("a negative number", rogue -> rogue.packed(-1, 40)),
                wrong("the least number", rogue -> rogue.packed(Integer.MIN_VALUE, 40)),
                wrong("a number whose lengths overflow", rogue -> rogue.packed(0x40000001, 40, 1, 1)),
                wrong("a header and nothing", rogue -> rogue.packed(2, 0)),
                wrong("an end within the lengths", rogue -> rogue.packed(3, 3, 1, 1)),
                wrong("a length beyond the end", rogue -> rogue.packed(2, 10, 5, 6)),
                wrong("bytes behind the last", rogue -> rogue.packed(2, 10, 5, 4)),
                wrong("a negative length", rogue -> rogue.packed(3, 10, 20, -10, 0)),
                wrong("the greatest length", rogue -> rogue.packed(2, 10, Integer.MAX_VALUE, Integer.MAX_VALUE)),
                wrong("a sum that overflows", rogue -> rogue.packed(3, 10, Integer.MAX_VALUE, Integer.MAX_VALUE, 12)),
                wrong("a message over the limit", rogue -> rogue.packed(2, 210, 201, 9)),
                wrong("within another message", rogue -> {
                    rogue.type(Wire.MESSAGE, 400, 300);
                    rogue.packed(2, 10, 5, 5);
                }),
                wrong("after CLOSE", rogue -> {
                    rogue.type(Wire.CLOSE, 0, 0);
                    rogue.packed(2, 10, 5, 5);
                }));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("wrongFrames")
    void aWrongFrameEndsTheConnectionAndDeliversNothing(String name, Consumer<Rogue> send) throws Exception {
        boolean within = name.startsWith("within");
        Rogue rogue = rogue(ROOMY.withMaxMessageBytes(within ? 1024 : 200), Rogue::acknowledge);
        rogue.helloAck =
                Rogue.HELLO_ACK.toBuilder().features(7 | Wire.FEATURE_PACKS).build();
        settle();
        assertThat(left.active).isEqualTo(1);
        send.accept(rogue);
        settle();
        assertThat(left.received).isZero();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class);
        left.checkMemory();
    }

    @ParameterizedTest
    @ValueSource(strings = {"MESSAGE", "STREAM"})
    void aFrameThatWasNotAgreedOnEndsTheConnection(Framing framing) throws Exception {
        boolean stream = framing == Framing.STREAM;
        Rogue rogue = rogue(OPTIONS.withFraming(framing), Rogue::acknowledge);
        int features = stream ? 7 | Wire.FEATURE_PACKS : 7;
        rogue.helloAck = Rogue.HELLO_ACK.toBuilder()
                .framing(framing.wireValue())
                .features(features)
                .build();
        settle();
        assertThat(left.active).isEqualTo(1);
        rogue.packed(2, 10, 5, 5);
        settle();
        assertThat(left.received).isZero();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class);
        left.checkMemory();
    }

    @Test
    void moreFramesThanGrantedEndTheConnection() throws Exception {
        Rogue rogue = rogue(ROOMY, Rogue::acknowledge);
        rogue.helloAck =
                Rogue.HELLO_ACK.toBuilder().features(7 | Wire.FEATURE_PACKS).build();
        settle();
        left.setReading(false);
        for (int i = 0; i < 7; i++) {
            rogue.packed(2, 0, 0, 0);
        }
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class);
        left.checkMemory();
    }
}
