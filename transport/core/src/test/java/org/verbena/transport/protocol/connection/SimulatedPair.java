package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.verbena.transport.ProviderException;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;

/** Two connections over a simulated network, or one and a peer that a test scripts; time passes when a test says so. */
abstract class SimulatedPair {
    static final MessageOptions OPTIONS = MessageOptions.DEFAULTS
            .withReceives(8, 256)
            .withMaxMessageBytes(100_000)
            .withRendezvousThresholdBytes(4000);

    SimulatedNetwork network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
    Party left;
    Party right;

    /** Whether messages may share frames. */
    boolean packs = true;

    void connect(MessageOptions leftOptions, MessageOptions rightOptions) {
        connect(leftOptions, rightOptions, Party.POOL_BYTES);
    }

    void connect(MessageOptions leftOptions, MessageOptions rightOptions, long rightPoolBytes) {
        left = Party.of("left", Role.INITIATOR, network.left, leftOptions, Party.POOL_BYTES);
        right = Party.of("right", Role.ACCEPTOR, network.right, rightOptions, rightPoolBytes);
        left.other = right;
        right.other = left;
        if (!packs) {
            left.connection.packNothing();
            right.connection.packNothing();
        }
        network.connect(left.connection, PrivateData.of(leftOptions), right.connection, PrivateData.of(rightOptions));
    }

    void connected() {
        connect(OPTIONS, OPTIONS);
        settle();
        assertThat(left.active).isEqualTo(1);
        assertThat(right.active).isEqualTo(1);
    }

    void settle() {
        while (network.step()) {
            // until nothing can happen
        }
    }

    /** Lets time pass, and calls connections whose deadline has come. */
    void pass(long millis) {
        long untilNanos = network.nowNanos + TimeUnit.MILLISECONDS.toNanos(millis);
        while (true) {
            long nextNanos = Math.min(left.deadlineNanos, right == null ? Long.MAX_VALUE : right.deadlineNanos);
            if (nextNanos > untilNanos) {
                break;
            }
            network.nowNanos = Math.max(network.nowNanos, nextNanos);
            left.tick();
            if (right != null) {
                right.tick();
            }
            settle();
        }
        network.nowNanos = untilNanos;
        settle();
    }

    void end() throws Exception {
        left.connection.close();
        settle();
        assertThat(left.inactive).isEqualTo(1);
        assertThat(right.inactive).isEqualTo(1);
        left.checkMemory();
        right.checkMemory();
    }

    Rogue rogue(MessageOptions options, Consumer<Rogue> onFrame) {
        left = Party.of("left", Role.INITIATOR, network.left, options);
        right = null;
        Rogue rogue = new Rogue(onFrame);
        rogue.answers = onFrame != null;
        network.connect(left.connection, PrivateData.of(options), rogue, PrivateData.of(options));
        return rogue;
    }

    static final long LONGER_THAN_A_RETRY_MILLIS = 100;

    final List<ByteBuf> fill = new ArrayList<>();

    /** From now on the device refuses, and what it has registered is in use. */
    final void refuse(Party party) {
        party.endpoint.domain.refuses = true;
        fill(party.sendPool);
        fill(party.receivePool);
    }

    private void fill(RegisteredBufferPool pool) {
        for (int bytes = 64 << 10; bytes >= 64; bytes /= 2) {
            try {
                while (true) {
                    fill.add(pool.allocate(bytes));
                }
            } catch (ProviderException | RegisteredMemoryExhaustedException noMore) {
                assertThat(pool.metrics().freeBytes()).isLessThan(Math.max(bytes, 4096) * 64L);
            }
        }
    }
}
