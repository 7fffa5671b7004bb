package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.EnumSet;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.device.AtomicCapability;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.SendFlags;

/** The verbs over soft iWARP, as far as they go without a connection: siw is connected by librdmacm alone. */
@Tag("lab")
@Timeout(350)
class VerbsSiwTest {
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(16, 16, 2, 2, 64);

    @Test
    void tellsWhatDeviceAndPortAre() {
        try (Context context = Verbs.device("siw0").open()) {
            assertThat(context.device().transportType()).isEqualTo(TransportType.IWARP);
            assertThat(context.device().nodeType()).isEqualTo(NodeType.RNIC);
            assertThat(context.queryPort(1).state()).isEqualTo(PortState.ACTIVE);
            assertThat(context.queryPort(1).linkLayer()).isEqualTo(LinkLayer.ETHERNET);
            assertThat(context.queryDevice().atomics()).isEqualTo(AtomicCapability.NONE);
            assertThat(context.queryDevice().maxReadSges()).isOne();
        }
    }

    @Test
    void makesWhatReliableConnectionsNeed() {
        try (Arena arena = Arena.ofShared();
                Context context = Verbs.device("siw0").open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(64);
                SharedReceiveQueue shared = domain.createSharedReceiveQueue(16, 1);
                MemoryRegion region = domain.registerMemory(arena.allocate(4096), EnumSet.of(AccessFlag.LOCAL_WRITE));
                QueuePair queuePair = domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES).withSharedReceives(shared))) {
            assertThat(queuePair.queryState()).isIn(QueuePairState.RESET, QueuePairState.INIT);
            shared.receiveQueue().receive(1).sge(region, 0, 4096);
            shared.receiveQueue().flush();
        }
    }

    @Test
    void saysThatThereIsNoOtherTypeOfQueuePair() {
        try (Context context = Verbs.device("siw0").open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(64)) {
            for (QueuePairType type : new QueuePairType[] {QueuePairType.UD, QueuePairType.UC}) {
                assertThatThrownBy(() -> domain.createQueuePair(
                                QueuePairOptions.reliable(completions, SIZES).withType(type)))
                        .isInstanceOf(VerbsException.class)
                        .hasMessageContaining("EOPNOTSUPP")
                        .hasMessageContaining("does not support this type of queue pair");
            }
        }
    }

    @Test
    void refusesAtomicsAndImmediateData() {
        try (Arena arena = Arena.ofShared();
                Context context = Verbs.device("siw0").open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(64);
                MemoryRegion region = domain.registerMemory(arena.allocate(4096), EnumSet.of(AccessFlag.LOCAL_WRITE));
                QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES))) {
            queuePair.sendQueue().fetchAndAdd(1, SendFlags.SIGNALED, 0x1000, 1, 1, region, 0);
            assertThatThrownBy(queuePair.sendQueue()::flush).isInstanceOf(VerbsException.class);
            assertThat(queuePair.sendQueue().stagedWrs()).isOne();
            queuePair.sendQueue().discard();
            queuePair.sendQueue().sendWithImmediate(2, SendFlags.SIGNALED, 5).sge(region, 0, 8);
            assertThatThrownBy(queuePair.sendQueue()::flush).isInstanceOf(VerbsException.class);
        }
    }
}
