package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.verbena.transport.Framing;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;

/** A device that registers no more memory for a while ends nothing: what needs some waits, or goes another way. */
@Timeout(240)
class RefusedMemoryTest extends SimulatedPair {
    private static final Device SHARED = new Device(false, 16, 16, 4, 4, 64, 4, 64);
    private static final int CONNECTIONS = 10;

    private static Stream<Arguments> ways() {
        return Stream.of(Framing.MESSAGE, Framing.STREAM)
                .flatMap(framing -> Stream.of(Device.VERBS, SHARED)
                        .flatMap(device -> Stream.of(framing == Framing.STREAM ? 1 : 0, 200, 3000, 50_000)
                                .flatMap(bytes -> Stream.of(true, false)
                                        .map(pooled -> Arguments.of(framing, device, bytes, pooled)))));
    }

    /** Each caller that takes memory meets a refusal: headers, copies, receives, messages, stretches, rendezvous. */
    @ParameterizedTest
    @MethodSource("ways")
    void whatIsSentArrivesOnceThereIsMemory(Framing framing, Device device, int bytes, boolean isPooled)
            throws Exception {
        network = new SimulatedNetwork(new Random(bytes), device, device);
        MessageOptions options = OPTIONS.withFraming(framing).withReceives(8, 4096);
        connect(options, options);
        settle();
        right.keepMessages = true;
        for (int i = 0; i < 20; i++) {
            if (isPooled) {
                left.sendPooled(bytes);
            } else {
                left.sendHeap(bytes);
            }
        }
        refuse(left);
        refuse(right);
        left.connection.flush();
        settle();
        pass(LONGER_THAN_A_RETRY_MILLIS);
        assertThat(left.inactive).isZero();
        assertThat(right.inactive).isZero();
        assertThat(left.failures).isEmpty();
        network.left.domain.refuses = false;
        network.right.domain.refuses = false;
        right.keepMessages = false;
        right.releaseKept(Integer.MAX_VALUE);
        pass(LONGER_THAN_A_RETRY_MILLIS);
        assertThat(right.received).isEqualTo(20);
        assertThat(left.failures).isEmpty();
        fill.forEach(ByteBuf::release);
        end();
    }

    /** A receive that cannot be posted again is posted when there is memory, though nothing else happens. */
    @Test
    void receivesComeBackByThemselves() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(8, 16 << 10);
        connect(options, options);
        settle();
        right.keepMessages = true;
        refuse(right);
        for (int i = 0; i < 8; i++) {
            left.sendHeap(10_000);
        }
        left.connection.flush();
        settle();
        int before = right.received;
        assertThat(before).isLessThan(8);
        assertThat(right.inactive).isZero();
        network.right.domain.refuses = false;
        pass(LONGER_THAN_A_RETRY_MILLIS);
        assertThat(right.received).isEqualTo(8);
        right.releaseKept(Integer.MAX_VALUE);
        fill.forEach(ByteBuf::release);
        end();
    }

    /** A claim for which there is no frame is one that finds no room: the program may try again. */
    @Test
    void claimsFindRoomOnceThereIsMemory() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(8, 16 << 10);
        connect(options, options);
        settle();
        refuse(left);
        assertThat(left.claim(5000)).isEqualTo(MessageClaims.Outcome.BACK_PRESSURED);
        pass(LONGER_THAN_A_RETRY_MILLIS);
        assertThat(left.inactive).isZero();
        network.left.domain.refuses = false;
        pass(LONGER_THAN_A_RETRY_MILLIS);
        assertThat(left.claim(5000)).isEqualTo(MessageClaims.Outcome.CLAIMED);
        left.connection.claims().flush();
        settle();
        assertThat(right.received).isEqualTo(1);
        fill.forEach(ByteBuf::release);
        end();
    }

    /** A connection that comes when there is no memory for its first receives ends, and no other does. */
    @Test
    void aNewConnectionEndsAlone() throws Exception {
        Crowd crowd = new Crowd(new Random(4), Device.VERBS, Device.VERBS, OPTIONS, 16 << 20, 4 << 20);
        Party before = crowd.add();
        crowd.settle();
        refuse(before.other);
        Party refused = crowd.add();
        crowd.settle();
        assertThat(refused.other.inactiveCause).isInstanceOf(RegisteredMemoryExhaustedException.class);
        assertThat(refused.inactive).isEqualTo(1);
        before.sendHeap(100);
        before.connection.flush();
        crowd.settle();
        assertThat(before.other.received).isEqualTo(1);
        before.other.endpoint.domain.refuses = false;
        Party after = crowd.add();
        crowd.settle();
        assertThat(after.active).isEqualTo(1);
        fill.forEach(ByteBuf::release);
        crowd.close();
    }

    /** With shared receives, whoever pumps next meets the refusal that another connection's user has brought about. */
    @Test
    void allConnectionsOfALoopSurvive() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(16, 4096);
        Crowd crowd = new Crowd(new Random(3), SHARED, SHARED, options, 16 << 20, 4 << 20);
        for (int i = 0; i < CONNECTIONS; i++) {
            crowd.add();
        }
        crowd.settle();
        Party keeper = crowd.rights.getFirst();
        keeper.keepMessages = true;
        refuse(keeper);
        for (int round = 0; round < 20; round++) {
            for (Party sender : crowd.lefts) {
                sender.sendHeap(3000);
                sender.connection.flush();
                crowd.settle();
            }
        }
        for (Party party : crowd.rights) {
            assertThat(party.inactive)
                    .as("%s: %s", party.name, party.inactiveCause)
                    .isZero();
        }
        keeper.endpoint.domain.refuses = false;
        keeper.keepMessages = false;
        keeper.releaseKept(Integer.MAX_VALUE);
        crowd.pass(LONGER_THAN_A_RETRY_MILLIS);
        for (Party party : crowd.rights) {
            assertThat(party.received).as(party.name).isEqualTo(20);
        }
        fill.forEach(ByteBuf::release);
        crowd.close();
    }
}
