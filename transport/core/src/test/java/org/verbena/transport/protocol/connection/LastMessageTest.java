package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.memory.HeldByUser;
import org.verbena.transport.protocol.memory.MessageBuffers;

/** A message sent just before a close, to a peer that has no memory for it at that moment. */
class LastMessageTest {
    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS
            .withReceives(8, 256)
            .withMaxMessageBytes(100_000)
            .withRendezvousThresholdBytes(4000);
    private static final int LENGTH = 1000;
    private static final MessageBuffers.Waiter OTHER = () -> {};

    private final SimulatedNetwork network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
    private final Party left = Party.of("left", Role.INITIATOR, network.left, OPTIONS);
    private final Party right = Party.of("right", Role.ACCEPTOR, network.right, OPTIONS);
    private final Deque<ByteBuf> heldByOthers = new ArrayDeque<>();

    @BeforeEach
    void sendInFragmentsAndClose() {
        left.other = right;
        right.other = left;
        byte[] data = PrivateData.of(OPTIONS);
        network.connect(left.connection, data, right.connection, data);
        settle();
        HeldByUser account = new HeldByUser(() -> {});
        for (int bytes = 64 << 10; bytes > 0; bytes /= 2) {
            for (ByteBuf memory = take(bytes, account); memory != null; memory = take(bytes, account)) {
                heldByOthers.add(memory);
            }
        }
        right.buffers.forgetMessage(OTHER);
        left.sendPooled(LENGTH);
        left.connection.close();
        settle();
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(left.inactive).as("%s", left).isEqualTo(1);
        assertThat(right.received).isZero();
        assertThat(right.inactive).as("%s", right).isZero();
    }

    private ByteBuf take(int bytes, HeldByUser account) {
        return right.buffers.tryAllocateMessage(bytes, OTHER, account);
    }

    private void settle() {
        while (network.step()) {
            // until nothing can happen
        }
    }

    private void giveBack() throws Exception {
        heldByOthers.forEach(ByteBuf::release);
        settle();
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void arrivesWhenThereIsMemory() throws Exception {
        giveBack();
        assertThat(right.received).isEqualTo(1);
        assertThat(right.inactive).isEqualTo(1);
        assertThat(right.inactiveCause).isNull();
    }

    @Test
    void waitsForItsReaderAsWell() throws Exception {
        right.setReading(false);
        heldByOthers.forEach(ByteBuf::release);
        heldByOthers.clear();
        settle();
        assertThat(right.received).isZero();
        assertThat(right.inactive).isZero();
        right.setReading(true);
        giveBack();
        assertThat(right.received).isEqualTo(1);
        assertThat(right.inactive).isEqualTo(1);
    }

    @Test
    void isDroppedByAReceiverThatCloses() throws Exception {
        right.connection.close();
        settle();
        assertThat(right.inactive).isEqualTo(1);
        giveBack();
        assertThat(right.received).isZero();
    }

    @Test
    void isDroppedByAReceiverThatAborts() throws Exception {
        right.connection.abort(null);
        settle();
        assertThat(right.inactive).isEqualTo(1);
        giveBack();
        assertThat(right.received).isZero();
    }
}
