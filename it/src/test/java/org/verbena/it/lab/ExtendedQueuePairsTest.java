package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.it.lab.QueuePairLoop.Side;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.AddressHandle;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.CompletionReader;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.MemoryWindow;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.WorkCompletionOpcode;

/**
 * What {@code ibv_wc_read_*} says of invalidations and datagrams, on soft RoCE.
 */
@Tag("lab")
@Timeout(120)
class ExtendedQueuePairsTest {
    private static final int SIGNALED = SendFlags.SIGNALED;
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(16, 16, 2, 2, 64);
    private static final Set<AccessFlag> WRITABLE = EnumSet.of(AccessFlag.REMOTE_WRITE);
    private static final Set<AccessFlag> BINDABLE =
            EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.MW_BIND, AccessFlag.REMOTE_WRITE);

    private static final int QKEY = 0x11111111;

    /** A receive of a datagram begins with this much of header. */
    private static final int GLOBAL_ROUTE_BYTES = 40;

    private static MemoryRegion register(QueuePairLoop loop, Set<AccessFlag> access) {
        return loop.domain.registerMemory(Arena.ofAuto().allocate(4096, 4096), access);
    }

    private static void awaitNext(CompletionReader reader) {
        long deadline = System.nanoTime() + Patience.LIMIT.toNanos();
        while (!reader.tryNext()) {
            assertThat(System.nanoTime()).as("no completion").isLessThan(deadline);
        }
    }

    @Test
    void theReaderTellsWhichWindowASendHasInvalidated() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue completions = loop.context.createCompletionQueue(64);
                CompletionQueue extended = loop.context.createExtendedCompletionQueue(
                        64, null, 0, EnumSet.of(CompletionField.BYTE_LEN, CompletionField.IMM));
                QueuePair sending = loop.domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES));
                QueuePair owning = loop.domain.createQueuePair(QueuePairOptions.reliable(extended, SIZES));
                MemoryRegion region = register(loop, BINDABLE);
                MemoryRegion others = register(loop, QueuePairLoop.ALL_RIGHTS);
                MemoryWindow window = loop.domain.allocateMemoryWindow(WindowType.TYPE_2)) {
            Side sender = loop.foreignSide(sending, completions, others);
            loop.connect(loop.foreignSide(owning, extended, region), sender);
            int key = MemoryWindow.nextKey(window.remoteKey());
            owning.receiveQueue().receive(1).sge(region, 1024, 64);
            owning.receiveQueue().flush();
            owning.sendQueue().bindWindow(2, SIGNALED, window, key, region, 0, 64, WRITABLE);
            owning.sendQueue().flush();
            CompletionReader reader = extended.reader();
            awaitNext(reader);
            assertThat(reader.opcode()).isEqualTo(WorkCompletionOpcode.BIND_MW);

            others.segment().setString(512, "from two pieces");
            SendQueue sends = sending.sendQueue();
            sends.write(3, SIGNALED, region.address(), key).sge(others, 0, 8);
            sends.sendWithInvalidate(4, SIGNALED, key).sge(others, 512, 8).sge(others, 520, 8);
            sends.write(5, SIGNALED, region.address(), key).sge(others, 0, 8);
            sends.flush();
            assertThat(sender.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(sender.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(sender.next().status()).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
            awaitNext(reader);
            assertThat(reader.workRequestId()).isOne();
            assertThat(reader.lengthBytes()).isEqualTo(16);
            assertThat(reader.invalidatedKey()).isEqualTo(key);
            assertThat(region.segment().getString(1024)).isEqualTo("from two pieces");
        }
    }

    @Test
    void theReaderTellsWhoSentADatagram() {
        Set<CompletionField> fields = EnumSet.of(
                CompletionField.BYTE_LEN,
                CompletionField.IMM,
                CompletionField.SRC_QP,
                CompletionField.SLID,
                CompletionField.SL,
                CompletionField.DLID_PATH_BITS);
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.UD);
                CompletionQueue completions = loop.context.createCompletionQueue(64);
                CompletionQueue extended = loop.context.createExtendedCompletionQueue(64, null, 0, fields);
                QueuePair sending = loop.domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES).withType(QueuePairType.UD));
                QueuePair reading = loop.domain.createQueuePair(
                        QueuePairOptions.reliable(extended, SIZES).withType(QueuePairType.UD));
                MemoryRegion region = register(loop, QueuePairLoop.ALL_RIGHTS);
                MemoryRegion others = register(loop, QueuePairLoop.ALL_RIGHTS);
                AddressHandle handle = loop.domain.createAddressHandle(AddressVector.global(
                        1, GlobalRoute.to(loop.gid().gid(), loop.gid().index())))) {
            Side sender = loop.foreignSide(sending, completions, others);
            loop.connect(loop.foreignSide(reading, extended, region), sender);
            reading.receiveQueue().receive(1).sge(region, 0, 2048);
            reading.receiveQueue().flush();
            others.segment().setString(0, "datagram");
            sending.sendQueue()
                    .sendWithImmediate(2, SIGNALED, 77)
                    .to(handle, reading.number(), QKEY)
                    .sge(others, 0, 9)
                    .flush();
            assertThat(sender.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            CompletionReader reader = extended.reader();
            awaitNext(reader);
            assertThat(reader.lengthBytes()).isEqualTo(GLOBAL_ROUTE_BYTES + 9);
            assertThat(reader.immediateData()).isEqualTo(77);
            assertThat(reader.sourceQueuePairNumber()).isEqualTo(sending.number());
            // RoCE has no LIDs and no service levels.
            assertThat(reader.sourceLid()).isZero();
            assertThat(reader.serviceLevel()).isZero();
            assertThat(reader.destinationPathBits()).isZero();
            assertThat(region.segment().getString(GLOBAL_ROUTE_BYTES)).isEqualTo("datagram");
        }
    }
}
