package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.MessageClaims.Outcome;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.ScatterGatherList;

/** Receives are few and short until the peer shows that it needs long ones. */
@Timeout(240)
class LongerReceivesTest extends SimulatedPair {
    private static final int SHORT = 128;
    private static final int LONG = 1024;

    private static final int SHORT_DEPTH = 13;
    /** One that is used is posted again with two others. */
    private static final int LEAST_POSTED = SHORT_DEPTH - 2;

    private static final Device DEVICE = new Device(false, 64, 64, 4, 4, 64, 4, 0).withReceives(LONG, SHORT);
    private static final MessageOptions DEFAULTS =
            MessageOptions.DEFAULTS.withMaxMessageBytes(100_000).withRendezvousThresholdBytes(Integer.MAX_VALUE);

    private final List<Frame> fromLeft = new ArrayList<>();
    private final List<Frame> fromRight = new ArrayList<>();

    private void connectShort() {
        connectShort(DEVICE, Party.POOL_BYTES);
    }

    private void connectShort(Device device, long rightPoolBytes) {
        network = new SimulatedNetwork(new Random(1), device, device);
        connect(DEFAULTS, DEFAULTS, rightPoolBytes);
        left.onFrameSent(fromLeft::add);
        right.onFrameSent(fromRight::add);
        settle();
    }

    private static List<Frame> announced(List<Frame> frames) {
        return frames.stream().filter(frame -> frame.type().equals("LONGER")).toList();
    }

    private void request(int bytes) {
        left.sendPooled(bytes);
        left.connection.flush();
        settle();
        right.sendPooled(bytes);
        right.connection.flush();
        settle();
    }

    @Test
    void anIdleConnectionHasAWindowOfEightForLittle() throws Exception {
        connectShort();
        for (int i = 0; i < 9; i++) {
            request(10);
            for (Party party : List.of(left, right)) {
                assertThat(party.endpoint.receivesOut).isBetween(LEAST_POSTED, SHORT_DEPTH);
                assertThat(party.receivePool.metrics().usedBytes()).isLessThanOrEqualTo(SHORT_DEPTH * SHORT);
                assertThat(party.connection.creditsAvailable()).isGreaterThanOrEqualTo(8);
            }
        }
        end();
    }

    @Test
    void shortRequestsAndRepliesNeedNoLongOnes() throws Exception {
        connectShort();
        for (int i = 0; i < 200; i++) {
            request(SHORT / 2 - Wire.HEADER_BYTES);
        }
        assertThat(left.received).isEqualTo(200);
        assertThat(announced(fromLeft)).isEmpty();
        assertThat(announced(fromRight)).isEmpty();
        for (Party party : List.of(left, right)) {
            assertThat(party.endpoint.receivesOut).isLessThanOrEqualTo(SHORT_DEPTH);
            assertThat(party.receivePool.metrics().usedBytes()).isLessThanOrEqualTo(SHORT_DEPTH * SHORT);
        }
        end();
    }

    @Test
    void aMessageThatNeedsLongOnesGetsThem() throws Exception {
        connectShort();
        left.sendHeap(20_000);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(1);
        assertThat(announced(fromRight)).hasSize(1);
        assertThat(announced(fromRight).getFirst().toString()).startsWith("LONGER 1024 bytes, from frame ");
        assertThat(announced(fromLeft)).as("the other direction").isEmpty();
        assertThat(fromLeft).anySatisfy(frame -> assertThat(frame.frameBytes()).isGreaterThan(SHORT));
        fromLeft.clear();
        for (int i = 0; i < 5; i++) {
            left.sendHeap(LONG - Wire.HEADER_BYTES);
            left.connection.flush();
            settle();
        }
        assertThat(right.received).isEqualTo(6);
        assertThat(fromLeft.stream().filter(frame -> frame.type().equals("MESSAGE")))
                .hasSize(5)
                .allSatisfy(frame -> assertThat(frame.frameBytes()).isEqualTo(LONG));
        assertThat(right.endpoint.receivesOut).isGreaterThan(SHORT_DEPTH);
        end();
    }

    /** The short receives that they use are not posted again: one behind another could overrun the rest. */
    @Test
    void controlFramesAreAcknowledgedWhenTheirReceivesArePosted() throws Exception {
        connectShort();
        refuse(right);
        left.sendHeap(SHORT - Wire.HEADER_BYTES);
        left.connection.flush();
        settle();
        assertThat(right.connection.toString()).contains("no memory");
        for (int i = 0; i < 3 * SHORT_DEPTH; i++) {
            left.connection.ping(4711L + left.pongs);
            settle();
        }
        assertThat(left.inactive).isZero();
        assertThat(right.endpoint.receivesOut).isGreaterThanOrEqualTo(LEAST_POSTED - 3);
        right.endpoint.domain.refuses = false;
        fill.forEach(ByteBuf::release);
        pass(LONGER_THAN_A_RETRY_MILLIS);
        int before = left.pongs;
        for (int i = 0; i < 5; i++) {
            left.connection.ping(4711L + left.pongs);
            request(LONG);
        }
        assertThat(left.pongs).isEqualTo(before + 5);
        assertThat(right.received).isEqualTo(6);
        end();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aPeerThatWaitsForGrantsGetsThem(boolean isPacking) throws Exception {
        packs = isPacking;
        connectShort();
        for (int i = 0; i < 300; i++) {
            left.sendPooled(10);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(300);
        assertThat(announced(fromRight)).hasSize(1);
        end();
    }

    /** Two promised messages of the longest kind leave no room for them. */
    @Test
    void withoutMemoryTheyStayShort() throws Exception {
        connectShort(DEVICE.withReceives(64 << 10, SHORT), 256 << 10);
        for (int i = 0; i < 3; i++) {
            left.sendHeap(20_000);
            left.connection.flush();
            settle();
        }
        assertThat(left.claim(15_000)).isEqualTo(Outcome.CLAIMED);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(4);
        assertThat(announced(fromRight)).isEmpty();
        end();
    }

    /** There is room for some long ones, but fewer than have been promised. */
    @Test
    void noPromiseIsBrokenForLongOnes() throws Exception {
        connectShort(DEVICE.withReceives(64 << 10, SHORT), 1 << 20);
        left.sendHeap(200);
        left.connection.flush();
        settle();
        right.setReading(false);
        while (left.connection.creditsAvailable() > 0) {
            left.sendPooled(1);
            left.connection.flush();
            settle();
        }
        for (int i = 0; i < SHORT_DEPTH; i++) {
            assertThat(left.connection.ping(4711 + i)).isTrue();
            settle();
        }
        assertThat(left.pongs).isEqualTo(SHORT_DEPTH);
        assertThat(announced(fromRight)).isEmpty();
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(left.sent);
        end();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aClaimThatIsLongerThanTheReceivesGoesInFragments(boolean isPacking) throws Exception {
        packs = isPacking;
        connectShort();
        MessageClaims claims = left.connection.claims();
        assertThat(claims.maxBytes()).isEqualTo(LONG - Wire.HEADER_BYTES);
        fromLeft.clear();
        assertThat(left.claim(10)).isEqualTo(Outcome.CLAIMED);
        assertThat(left.claim(LONG - Wire.HEADER_BYTES)).isEqualTo(Outcome.CLAIMED);
        left.connection.flush();
        assertThat(fromLeft.stream().map(Frame::type)).startsWith("MESSAGE", "MESSAGE", "CONTINUATION");
        assertThat(left.claim(20)).as("behind it").isEqualTo(Outcome.CLAIMED);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(3);
        assertThat(announced(fromRight)).hasSize(1);
        for (int i = 0; i < SHORT_DEPTH; i++) { // those that were posted before are used first
            assertThat(left.claim(10)).isEqualTo(Outcome.CLAIMED);
            left.connection.flush();
            settle();
        }
        fromLeft.clear();
        assertThat(left.claim(LONG - Wire.HEADER_BYTES)).isEqualTo(Outcome.CLAIMED);
        left.connection.flush();
        settle();
        assertThat(fromLeft.getFirst().type()).isEqualTo("MESSAGE");
        assertThat(fromLeft.getFirst().frameBytes()).isEqualTo(LONG);
        assertThat(right.received).isEqualTo(4 + SHORT_DEPTH);
        end();
    }

    /** Its memory is that of a short frame, and so is what the frame takes. */
    @Test
    void aClaimThatWasOpenWhenReceivesBecameLongHasTheRoomOfAShortFrame() throws Exception {
        connectShort();
        assertThat(left.connection.claims().tryClaim(10)).isEqualTo(Outcome.CLAIMED);
        left.sendHeap(400);
        left.connection.flush();
        settle();
        assertThat(announced(fromRight)).hasSize(1);
        left.fillAndCommit(10);
        for (int i = 0; i < 30; i++) {
            assertThat(left.claim(90)).isEqualTo(Outcome.CLAIMED);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(32);
        end();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aFrameLongerThanItsReceiveEndsTheConnection(boolean follows) throws Exception {
        network = new SimulatedNetwork(new Random(1), DEVICE, DEVICE);
        network.endsOnOverrun = true;
        Rogue rogue = rogue(DEFAULTS, Rogue::acknowledge);
        rogue.helloAck = Rogue.HELLO_ACK.toBuilder()
                .features(follows ? 7 | Wire.FEATURE_LONGER : 7)
                .build();
        settle();
        assertThat(left.active).isEqualTo(1);
        rogue.type(Wire.MESSAGE, SHORT, SHORT);
        settle();
        assertThat(left.inactive).isEqualTo(1);
        assertThat(left.received).isZero();
        assertThat(left.inactiveCause).isInstanceOf(ConnectionException.Lost.class);
        left.checkMemory();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void receivesGrowForPeersThatFollow(boolean follows) throws Exception {
        network = new SimulatedNetwork(new Random(1), DEVICE, DEVICE);
        Rogue rogue = rogue(DEFAULTS, Rogue::acknowledge);
        rogue.helloAck = Rogue.HELLO_ACK.toBuilder()
                .features(7 | Wire.FEATURE_PACKS | (follows ? Wire.FEATURE_LONGER : 0))
                .build();
        settle();
        int messages = 20;
        left.other = left;
        left.sizes.addAll(Collections.nCopies(messages, 0));
        rogue.packed(messages, 0, new int[messages]); // fills more than half of a short receive
        settle();
        assertThat(left.received).isEqualTo(messages);
        assertThat(rogue.typesHeard.contains(Wire.LONGER)).isEqualTo(follows);
        left.connection.abort(null);
        settle();
        left.checkMemory();
    }

    private Rogue grower(int greatestBytes) {
        Rogue rogue = rogue(OPTIONS, Rogue::acknowledge);
        rogue.helloAck =
                Rogue.HELLO_ACK.toBuilder().greatestReceiveBytes(greatestBytes).build();
        left.onFrameSent(fromLeft::add);
        settle();
        assertThat(left.active).isEqualTo(1);
        return rogue;
    }

    /**
     * Announces longer receives.
     *
     * @param after frames and writes from now on that use short ones
     */
    private void announce(Rogue rogue, int after) {
        int acknowledgement = fromLeft.size(); // its number: HELLO had 0
        rogue.longer(512, acknowledgement + 1 + after);
        settle();
        assertThat(fromLeft).hasSize(acknowledgement + 1);
        fromLeft.clear();
    }

    @Test
    void framesAreLongFromTheOneWithTheNumberOn() throws Exception {
        announce(grower(512), 2);
        left.sendHeap(240 + 240 + 400);
        left.sendHeap(496);
        left.connection.flush();
        settle();
        assertThat(fromLeft.stream().map(Frame::frameBytes)).containsExactly(256, 256, 416, 512);
        left.connection.abort(null);
        settle();
        left.checkMemory();
    }

    /** A write with immediate data uses a receive, and so has a number. */
    @Test
    void writesCount() throws Exception {
        announce(grower(512), 2);
        left.connection.oneSided().writeWithImmediate(0, 0, 0, new ScatterGatherList(1), null, left::oneSidedTold, 0);
        left.sendHeap(240 + 300);
        left.connection.flush();
        settle();
        assertThat(fromLeft.stream().map(Frame::frameBytes)).containsExactly(256, 316);
        left.connection.abort(null);
        settle();
        left.checkMemory();
    }

    static Stream<Arguments> wrongFrames() {
        return Stream.of(
                wrong("not announced", 0, rogue -> rogue.longer(512, 0)),
                wrong("no growth", 512, rogue -> rogue.longer(256, 0)),
                wrong("shorter", 512, rogue -> rogue.longer(128, 0)),
                wrong("nothing", 512, rogue -> rogue.longer(0, 0)),
                wrong("beyond the greatest", 512, rogue -> rogue.longer(513, 0)),
                wrong("negative", 512, rogue -> rogue.longer(-1, 0)),
                wrong("the most", 512, rogue -> rogue.longer(Integer.MAX_VALUE, 0)),
                wrong("without a number", 512, rogue -> rogue.type(Wire.LONGER, 512, 3)));
    }

    private static Arguments wrong(String name, int greatestBytes, Consumer<Rogue> send) {
        return Arguments.of(name, greatestBytes, send);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("wrongFrames")
    void aWrongAnnouncementEndsTheConnection(String name, int greatestBytes, Consumer<Rogue> send) throws Exception {
        Rogue rogue = grower(greatestBytes);
        send.accept(rogue);
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class);
        left.checkMemory();
    }

    @Test
    void receivesGrowOnce() throws Exception {
        Rogue rogue = grower(1024);
        rogue.longer(512, 0);
        settle();
        assertThat(left.inactiveCause).isNull();
        rogue.longer(1024, 0);
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class);
        left.checkMemory();
    }

    @Test
    void receivesThatShrinkAreNoHello() throws Exception {
        Rogue rogue = rogue(OPTIONS, Rogue::acknowledge);
        rogue.helloAck = Rogue.HELLO_ACK.toBuilder().greatestReceiveBytes(255).build();
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class);
        left.checkMemory();
    }
}
