package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.it.lab.QueuePairLoop.Completion;
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
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.WorkRequestBuilder;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;
import org.verbena.verbs.work.WorkCompletionOpcode;

/**
 * Windows, invalidations and datagrams by {@code ibv_wr_*}, and what {@code ibv_wc_read_*} says of them, on soft RoCE.
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
    void theBuilderBindsAWindowAndInvalidatesIt() {
        Set<SendOperation> operations = EnumSet.of(SendOperation.BIND_MW, SendOperation.LOCAL_INV);
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue completions = loop.context.createCompletionQueue(64);
                QueuePair building = loop.domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES), QueuePairExtension.building(operations));
                MemoryRegion region = register(loop, BINDABLE);
                MemoryWindow window = loop.domain.allocateMemoryWindow(WindowType.TYPE_2)) {
            Side owner = loop.foreignSide(building, completions, region);
            loop.connect(loop.left, owner);
            WorkRequestBuilder builder = building.builder();
            int key = MemoryWindow.nextKey(window.remoteKey());
            builder.start();
            builder.bindWindow(1, SIGNALED, window, key, region, 0, 64, WRITABLE);
            builder.complete();
            Completion bound = owner.next();
            assertThat(bound.status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(bound.opcode()).isEqualTo(WorkCompletionOpcode.BIND_MW);

            loop.left.memory().setString(0, "while bound");
            write(loop.left, 2, region.address(), key);
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(region.segment().getString(0)).isEqualTo("while bound");

            builder.start();
            builder.localInvalidate(3, SIGNALED, key);
            builder.complete();
            assertThat(owner.next().opcode()).isEqualTo(WorkCompletionOpcode.LOCAL_INV);
            loop.left.memory().setString(0, "afterwards");
            write(loop.left, 4, region.address(), key);
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
            assertThat(region.segment().getString(0)).isEqualTo("while bound");
        }
    }

    private static void write(Side from, long id, long address, int key) {
        from.queuePair.sendQueue().write(id, SIGNALED, address, key).piece(from.region, 0, 64);
        from.queuePair.sendQueue().flush();
    }

    @Test
    void theReaderTellsWhichWindowASendHasInvalidated() {
        Set<SendOperation> operations = EnumSet.of(SendOperation.SEND_WITH_INV, SendOperation.RDMA_WRITE);
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue completions = loop.context.createCompletionQueue(64);
                CompletionQueue extended = loop.context.createExtendedCompletionQueue(
                        64, null, 0, EnumSet.of(CompletionField.BYTE_LEN, CompletionField.IMM));
                QueuePair building = loop.domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES), QueuePairExtension.building(operations));
                QueuePair owning = loop.domain.createQueuePair(QueuePairOptions.reliable(extended, SIZES));
                MemoryRegion region = register(loop, BINDABLE);
                MemoryRegion others = register(loop, QueuePairLoop.ALL_RIGHTS);
                MemoryWindow window = loop.domain.allocateMemoryWindow(WindowType.TYPE_2)) {
            Side sender = loop.foreignSide(building, completions, others);
            loop.connect(loop.foreignSide(owning, extended, region), sender);
            int key = MemoryWindow.nextKey(window.remoteKey());
            owning.receiveQueue().receive(1).piece(region, 1024, 64);
            owning.receiveQueue().flush();
            owning.sendQueue().bindWindow(2, SIGNALED, window, key, region, 0, 64, WRITABLE);
            owning.sendQueue().flush();
            CompletionReader reader = extended.reader();
            awaitNext(reader);
            assertThat(reader.opcode()).isEqualTo(WorkCompletionOpcode.BIND_MW);

            others.segment().setString(512, "from two pieces");
            WorkRequestBuilder builder = building.builder();
            builder.start();
            builder.write(3, SIGNALED, region.address(), key).piece(others, 0, 8);
            builder.sendWithInvalidate(4, SIGNALED, key).pieces(others, new long[] {512, 520}, new int[] {8, 8});
            builder.write(5, SIGNALED, region.address(), key).piece(others, 0, 8);
            builder.complete();
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

    /** If this fails since the bytes arrive, say so where the Javadoc of {@code inlineList} warns of it. */
    @Test
    void librxeForgetsTheBytesOfAnInlineList() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue completions = loop.context.createCompletionQueue(64);
                QueuePair building = loop.domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES),
                        QueuePairExtension.building(EnumSet.of(SendOperation.SEND)));
                MemoryRegion region = register(loop, QueuePairLoop.ALL_RIGHTS)) {
            Side sender = loop.foreignSide(building, completions, region);
            loop.connect(loop.left, sender);
            loop.left.queuePair.receiveQueue().receive(1).piece(loop.left.region, 0, 64);
            loop.left.queuePair.receiveQueue().flush();
            WorkRequestBuilder builder = building.builder();
            builder.start();
            builder.send(2, SIGNALED | SendFlags.INLINE).inlineList(bytes("from two "), bytes("pieces\0"));
            builder.complete();
            assertThat(sender.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(loop.left.next().lengthBytes()).isZero();
        }
    }

    private static MemorySegment bytes(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        return Arena.ofAuto().allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
    }

    @Test
    void theBuilderSendsDatagramsAndTheReaderTellsWhoSentThem() {
        Set<SendOperation> operations = EnumSet.of(SendOperation.SEND_WITH_IMM);
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
                QueuePair building = loop.domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES).withType(QueuePairType.UD),
                        QueuePairExtension.building(operations));
                QueuePair reading = loop.domain.createQueuePair(
                        QueuePairOptions.reliable(extended, SIZES).withType(QueuePairType.UD));
                MemoryRegion region = register(loop, QueuePairLoop.ALL_RIGHTS);
                MemoryRegion others = register(loop, QueuePairLoop.ALL_RIGHTS);
                AddressHandle handle = loop.domain.createAddressHandle(AddressVector.global(
                        1, GlobalRoute.to(loop.gid().gid(), loop.gid().index())))) {
            Side sender = loop.foreignSide(building, completions, others);
            loop.connect(loop.foreignSide(reading, extended, region), sender);
            reading.receiveQueue().receive(1).piece(region, 0, 2048);
            reading.receiveQueue().flush();
            others.segment().setString(0, "datagram");
            WorkRequestBuilder builder = building.builder();
            builder.start();
            builder.sendWithImmediate(2, SIGNALED, 77)
                    .to(handle, reading.number(), QKEY)
                    .piece(others, 0, 9);
            builder.complete();
            assertThat(sender.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            CompletionReader reader = extended.reader();
            awaitNext(reader);
            assertThat(reader.lengthBytes()).isEqualTo(GLOBAL_ROUTE_BYTES + 9);
            assertThat(reader.immediateData()).isEqualTo(77);
            assertThat(reader.sourceQueuePairNumber()).isEqualTo(building.number());
            // RoCE has no LIDs and no service levels.
            assertThat(reader.sourceLid()).isZero();
            assertThat(reader.serviceLevel()).isZero();
            assertThat(reader.destinationPathBits()).isZero();
            assertThat(region.segment().getString(GLOBAL_ROUTE_BYTES)).isEqualTo("datagram");
        }
    }
}
