package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.it.lab.QueuePairLoop.Completion;
import org.verbena.it.lab.QueuePairLoop.Side;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.WorkRequestBuilder;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;
import org.verbena.verbs.work.WorkCompletionOpcode;

/**
 * Flushes and atomic writes of the InfiniBand specification 1.5 on soft RoCE, which rdma-core has had since 45 and
 * Linux since 6.3: in the guest of {@code LAB_SUITE=debian13}. Elsewhere these tests are skipped.
 */
@Tag("lab")
@Timeout(120)
class FlushTest {
    private static final int SIGNALED = SendFlags.SIGNALED;
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(16, 16, 2, 2, 64);
    private static final Set<SendOperation> OPERATIONS =
            EnumSet.of(SendOperation.RDMA_WRITE, SendOperation.ATOMIC_WRITE, SendOperation.FLUSH);
    private static final EnumSet<AccessFlag> FLUSHABLE =
            EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_WRITE, AccessFlag.FLUSH_GLOBAL);

    /** A queue pair that can do both; skips the test where the library or the device cannot. */
    private static QueuePair flushing(QueuePairLoop loop, CompletionQueue completions) {
        try {
            return loop.domain.createQueuePair(
                    QueuePairOptions.reliable(completions, SIZES), QueuePairExtension.building(OPERATIONS));
        } catch (VerbsException refused) {
            return abort("neither flushes nor atomic writes here: " + refused.getMessage());
        }
    }

    /** Connects the two; what comes to the left one may be flushed. */
    private static void connect(QueuePairLoop loop, Side writer) {
        loop.connect(loop.left, writer);
        loop.left.queuePair.modify(QueuePairAttributes.to(QueuePairState.RTS)
                .accessFlags(AccessFlag.REMOTE_WRITE, AccessFlag.REMOTE_ATOMIC, AccessFlag.FLUSH_GLOBAL)
                .build());
    }

    @Test
    void anAtomicWriteAndAFlushFollowAWrite() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue completions = loop.context.createCompletionQueue(64);
                QueuePair building = flushing(loop, completions);
                MemoryRegion source = loop.domain.registerMemory(
                        Arena.ofAuto().allocate(4096, 4096), EnumSet.of(AccessFlag.LOCAL_WRITE));
                MemoryRegion target = loop.domain.registerMemory(Arena.ofAuto().allocate(4096, 4096), FLUSHABLE)) {
            Side writer = loop.foreignSide(building, completions, source);
            connect(loop, writer);
            source.segment().setString(0, "what is flushed");
            WorkRequestBuilder builder = building.builder();
            for (boolean wholeRegion : new boolean[] {false, true}) {
                builder.start();
                builder.write(1, SIGNALED, target.address(), target.remoteKey()).sge(source, 0, 64);
                builder.flush(2, SIGNALED, target.address(), target.remoteKey(), 64, false, wholeRegion);
                builder.atomicWrite(3, SIGNALED, target.address() + 64, target.remoteKey(), 0x0123456789abcdefL);
                builder.complete();
                assertThat(writer.next()).extracting(Completion::opcode).isEqualTo(WorkCompletionOpcode.RDMA_WRITE);
                assertThat(writer.next()).extracting(Completion::opcode).isEqualTo(WorkCompletionOpcode.FLUSH);
                assertThat(writer.next()).extracting(Completion::opcode).isEqualTo(WorkCompletionOpcode.ATOMIC_WRITE);
                assertThat(target.segment().getString(0)).isEqualTo("what is flushed");
                assertThat(target.segment().get(ValueLayout.JAVA_LONG, 64)).isEqualTo(0x0123456789abcdefL);
                target.segment().fill((byte) 0);
            }
        }
    }

    @Test
    void aRegionWithoutTheRightIsNotFlushed() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue completions = loop.context.createCompletionQueue(64);
                QueuePair building = flushing(loop, completions);
                MemoryRegion target =
                        loop.domain.registerMemory(Arena.ofAuto().allocate(4096, 4096), QueuePairLoop.ALL_RIGHTS)) {
            Side writer = loop.foreignSide(building, completions, target);
            connect(loop, writer);
            WorkRequestBuilder builder = building.builder();
            builder.start();
            builder.flush(1, SIGNALED, target.address(), target.remoteKey(), 64, false, false);
            builder.complete();
            assertThat(writer.next().status()).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
        }
    }
}
