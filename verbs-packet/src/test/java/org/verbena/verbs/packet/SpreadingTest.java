package org.verbena.verbs.packet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.AsyncEvent;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.MemoryWindow;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.Stub;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.SendOperation;

/** Receive work queues, tables of them and the queue pairs that spread packets over these. */
@Timeout(240)
class SpreadingTest {
    private static final QueuePairCapabilities NOTHING = new QueuePairCapabilities(0, 0, 0, 0, 0);
    private static final Set<ReceiveHashField> ADDRESSES =
            EnumSet.of(ReceiveHashField.SRC_IPV4, ReceiveHashField.DST_IPV4);

    private Arena arena;
    private Context context;
    private ProtectionDomain domain;
    private CompletionQueue completions;
    private MemoryRegion region;
    private ReceiveWorkQueue queue;

    @BeforeEach
    void open() throws Exception {
        Stub.install();
        arena = Arena.ofShared();
        context = Verbs.device("stub0").open();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(8);
        region = domain.registerMemory(arena.allocate(64, 8), EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.MW_BIND));
        queue = ReceiveWorkQueue.create(domain, 3, 2, completions, Set.of());
    }

    @AfterEach
    void close() {
        queue.close();
        region.close();
        completions.close();
        domain.close();
        context.close();
        arena.close();
        assertThat(Stub.live()).isZero();
    }

    private static String pointer(VerbsObject object) {
        return "0x" + Long.toHexString(object.nativeAddress());
    }

    private QueuePairOptions options(QueuePairCapabilities sizes) {
        return QueuePairOptions.reliable(completions, sizes).withType(QueuePairType.RAW_PACKET);
    }

    @Test
    void aQueueIsCreatedAsAskedFor() {
        assertThat(Stub.text("stub_text"))
                .isEqualTo("context=(nil) type=0 max_wr=3 max_sge=2 pd=" + pointer(domain) + " cq="
                        + pointer(completions) + " mask=0 flags=0");
        assertThat(queue.number()).isEqualTo(0x77);
        assertThat(queue.maxSges()).isEqualTo(2);
        assertThat(queue.domain()).isSameAs(domain);
        assertThat(queue.receiveQueue().capacityWrs()).isEqualTo(4); // the stub grants one more
        assertThat(Stub.call("stub_wq_lock", queue.nativeAddress())).isZero();
        ReceiveWorkQueue.create(domain, 1, 1, completions, EnumSet.allOf(WorkQueueFlag.class))
                .close();
        assertThat(Stub.text("stub_text")).endsWith("mask=1 flags=f");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ReceiveWorkQueue.create(domain, 0, 1, completions, Set.of()));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ReceiveWorkQueue.create(domain, 1, 0, completions, Set.of()));
        Stub.failNext("stub_create_wq", Errno.EINVAL);
        assertThatThrownBy(() -> ReceiveWorkQueue.create(domain, 9, 1, completions, Set.of()))
                .hasMessageContaining("ibv_create_wq(max_wr=9")
                .hasMessageContaining("maxReceiveWorkQueues");
        Stub.failNext("stub_create_wq", Errno.ENOMEM);
        assertThatThrownBy(() -> ReceiveWorkQueue.create(domain, 9, 1, completions, Set.of()))
                .hasMessageContaining("locked-memory limit");
    }

    @Test
    void receivesArePostedUntilItIsFull() {
        ReceiveQueue receives = queue.receiveQueue();
        for (int id = 0; id < 4; id++) {
            receives.receive(id).sge(region, id, 8).sge(region, 32, 4);
        }
        receives.flush();
        assertThat(Stub.postedCount()).isEqualTo(4);
        assertThat(Stub.posted(3).workRequestId()).isEqualTo(3);
        assertThat(Stub.posted(3).addresses()).containsExactly(region.address() + 3, region.address() + 32);
        assertThat(Stub.posted(3).keys()).containsExactly(region.localKey(), region.localKey());
        receives.receive(4);
        assertThatThrownBy(receives::flush)
                .hasMessageContaining("ibv_post_wq_recv")
                .hasMessageContaining("the receive work queue is full");
        receives.discard();
        assertThatThrownBy(() -> receives.receive(5).sge(region, 60, 8)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void aQueueIsModified() {
        assertThat(queue.lastKnownState()).isEqualTo(WorkQueueState.RESET);
        queue.moveTo(WorkQueueState.RDY);
        assertCalled("stub_modify_wq", 1, 1, 0, 0, 0);
        assertThat(queue.lastKnownState()).isEqualTo(WorkQueueState.RDY);
        queue.moveTo(WorkQueueState.RDY, WorkQueueState.ERR);
        assertCalled("stub_modify_wq", 3, 2, 1, 0, 0);
        queue.changeFlags(Set.of(WorkQueueFlag.CVLAN_STRIPPING), Set.of(WorkQueueFlag.DELAY_DROP));
        assertCalled("stub_modify_wq", 4, 0, 0, 1, 5);
        assertThatIllegalArgumentException().isThrownBy(() -> queue.moveTo(WorkQueueState.UNKNOWN));
        assertThatIllegalArgumentException().isThrownBy(() -> queue.moveTo(WorkQueueState.UNKNOWN, WorkQueueState.RDY));
        assertThatIllegalArgumentException().isThrownBy(() -> queue.changeFlags(Set.of(), Set.of()));
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> queue.changeFlags(Set.of(WorkQueueFlag.SCATTER_FCS), Set.of(WorkQueueFlag.SCATTER_FCS)));
        Stub.failNext("stub_modify_wq", Errno.EINVAL);
        assertThatThrownBy(() -> queue.moveTo(WorkQueueState.RESET))
                .hasMessageContaining("ibv_modify_wq")
                .hasMessageContaining("not allowed from the current state");
    }

    @Test
    void aProviderWithoutItsPostFunctionIsRefused() {
        Stub.call("stub_wq_without_post", 1);
        int live = Stub.live();
        assertThatThrownBy(() -> ReceiveWorkQueue.create(domain, 1, 1, completions, Set.of()))
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("ibv_post_wq_recv")
                .hasMessageContaining("EOPNOTSUPP");
        assertThat(Stub.live()).isEqualTo(live);
    }

    @Test
    void eventsNameTheQueueTheyAreOf() {
        Stub.call("stub_event", AsyncEventType.WQ_FATAL.value(), queue.nativeAddress());
        AsyncEvent event = context.tryGetAsyncEvent();
        assertThat(event).isNotNull();
        assertThat(event.type()).isEqualTo(AsyncEventType.WQ_FATAL);
        assertThat(event.source()).isSameAs(queue);
    }

    @Test
    void aTableNamesItsQueuesAndKeepsThemOpen() {
        ReceiveWorkQueue second = ReceiveWorkQueue.create(domain, 1, 1, completions, Set.of());
        IndirectionTable table = IndirectionTable.create(context, List.of(queue, second, second, queue));
        assertThat(Stub.text("stub_text"))
                .isEqualTo("log=2 mask=0 " + pointer(queue) + " " + pointer(second) + " " + pointer(second) + " "
                        + pointer(queue));
        assertThat(table.entries()).isEqualTo(4);
        assertThatIllegalStateException().isThrownBy(second::close).withMessageContaining("IndirectionTable of stub0");
        assertThatIllegalStateException().isThrownBy(queue::close);
        Stub.failNext("stub_destroy_rwq_ind_table", Errno.EBUSY);
        assertThatThrownBy(table::close).hasMessageContaining("ibv_destroy_rwq_ind_table");
        table.close();
        table.close();
        assertThatIllegalStateException().isThrownBy(table::nativeAddress);
        Stub.failNext("stub_destroy_wq", Errno.EBUSY);
        assertThatThrownBy(second::close).hasMessageContaining("ibv_destroy_wq");
        second.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> IndirectionTable.create(context, List.of(queue, second)))
                .withMessageContaining("is closed");
        assertThatIllegalStateException().isThrownBy(() -> second.moveTo(WorkQueueState.RDY));
        assertThatIllegalStateException().isThrownBy(() -> second.receiveQueue().receive(1));
    }

    @Test
    void aTableHasAPowerOfTwoEntriesWithinBounds() {
        IndirectionTable.create(context, List.of(queue)).close();
        IndirectionTable.create(context, Collections.nCopies(1024, queue)).close();
        assertThat(Stub.text("stub_text")).startsWith("log=10 ");
        assertThatIllegalArgumentException().isThrownBy(() -> IndirectionTable.create(context, List.of()));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> IndirectionTable.create(context, List.of(queue, queue, queue)))
                .withMessageContaining("3 entries are not a power of two");
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        IndirectionTable.create(context, Collections.nCopies(2 * IndirectionTable.MAX_ENTRIES, queue)));
        IndirectionTable.create(context, Collections.nCopies(IndirectionTable.MAX_ENTRIES, queue))
                .close();
        Stub.failNext("stub_create_rwq_ind_table", Errno.EINVAL);
        assertThatThrownBy(() -> IndirectionTable.create(context, List.of(queue)))
                .hasMessageContaining("maxIndirectionTableEntries");
    }

    @Test
    void aQueuePairSpreadsWhatItReceives() {
        byte[] key = HexFormat.of().parseHex("6d5a56da255b0ec2");
        try (IndirectionTable table = IndirectionTable.create(context, List.of(queue))) {
            ReceiveHash hash = new ReceiveHash(
                    table,
                    key,
                    EnumSet.of(ReceiveHashField.SRC_IPV6, ReceiveHashField.DST_PORT_UDP, ReceiveHashField.INNER));
            try (QueuePair queuePair = domain.createQueuePair(options(NOTHING), QueuePairExtension.spreading(hash));
                    MemoryWindow window = domain.allocateMemoryWindow(WindowType.TYPE_1)) {
                // PD, IND_TABLE and RX_HASH; no completion queues, for it has no queues.
                assertCalled("stub_create_qp_ex", 1 | 1 << 4 | 1 << 5, 0, 0, 0, 0);
                assertThat(Stub.text("stub_text"))
                        .isEqualTo("table=" + pointer(table)
                                + " send_cq=(nil) recv_cq=(nil) srq=(nil) function=1 fields=80000084"
                                + " key=6d5a56da255b0ec2");
                assertThatIllegalStateException()
                        .isThrownBy(table::close)
                        .withMessageContaining("RAW_PACKET QueuePair");
                assertThatIllegalStateException()
                        .isThrownBy(queuePair::receiveQueue)
                        .withMessageContaining("receive work queues");
                assertThatIllegalStateException()
                        .isThrownBy(queuePair::sendQueue)
                        .withMessageContaining("without sends");
                assertThatIllegalStateException().isThrownBy(queuePair::builder);
                assertThatIllegalStateException()
                        .isThrownBy(() -> window.bind(queuePair, 1, 0, region, 0, 8, Set.of()))
                        .withMessageContaining("without sends");
            }
            QueuePairCapabilities sends = new QueuePairCapabilities(4, 0, 1, 0, 0);
            try (QueuePair sending = domain.createQueuePair(options(sends), QueuePairExtension.spreading(hash))) {
                assertThat(Stub.text("stub_text")).contains("send_cq=" + pointer(completions) + " recv_cq=(nil)");
                assertThat(sending.sendQueue().maxSges()).isEqualTo(1);
            }
        }
    }

    @Test
    void whatSpreadingExcludesIsRefused() {
        try (IndirectionTable table = IndirectionTable.create(context, List.of(queue));
                SharedReceiveQueue shared = domain.createSharedReceiveQueue(1, 1);
                Context other = Verbs.device("stub0").open();
                ProtectionDomain otherDomain = other.allocateProtectionDomain();
                CompletionQueue otherCompletions = other.createCompletionQueue(1)) {
            QueuePairExtension spreading =
                    QueuePairExtension.spreading(new ReceiveHash(table, new byte[40], ADDRESSES));
            assertThatIllegalArgumentException()
                    .isThrownBy(
                            () -> domain.createQueuePair(options(new QueuePairCapabilities(0, 1, 0, 1, 0)), spreading))
                    .withMessageContaining("maxReceiveWrs");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> domain.createQueuePair(options(NOTHING).withSharedReceives(shared), spreading))
                    .withMessageContaining("without shared receives");
            QueuePairExtension building =
                    new QueuePairExtension(Set.of(SendOperation.SEND), Set.of(), null, 0, 0, spreading.receiveHash());
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> domain.createQueuePair(options(NOTHING), building))
                    .withMessageContaining("maxSendWrs");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> otherDomain.createQueuePair(
                            QueuePairOptions.reliable(otherCompletions, NOTHING), spreading))
                    .withMessageContaining("another context");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> IndirectionTable.create(other, List.of(queue)))
                    .withMessageContaining("another context");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> ReceiveWorkQueue.create(domain, 1, 1, otherCompletions, Set.of()))
                    .withMessageContaining("another context");
            assertThatIllegalArgumentException().isThrownBy(() -> new ReceiveHash(table, new byte[0], ADDRESSES));
            assertThatIllegalArgumentException().isThrownBy(() -> new ReceiveHash(table, new byte[256], ADDRESSES));
            assertThat(new ReceiveHash(table, new byte[255], ADDRESSES).table()).isSameAs(table);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new ReceiveHash(
                            table, new byte[40], Set.of(ReceiveHashField.SRC_IPV4, ReceiveHashField.DST_IPV6)))
                    .withMessageContaining("IPv4 or IPv6");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new ReceiveHash(
                            table, new byte[40], Set.of(ReceiveHashField.SRC_PORT_TCP, ReceiveHashField.DST_PORT_UDP)));
        }
    }

    @Test
    void olderProvidersAreSupported() {
        Stub.call("stub_without_later", 1);
        try (Context older = Verbs.device("stub0").open();
                ProtectionDomain olderDomain = older.allocateProtectionDomain();
                CompletionQueue olderCompletions = older.createCompletionQueue(8)) {
            assertThatThrownBy(() -> ReceiveWorkQueue.create(olderDomain, 1, 1, olderCompletions, Set.of()))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("ibv_create_wq")
                    .hasMessageContaining("EOPNOTSUPP");
        }
    }

    private static void assertCalled(String function, long... arguments) {
        assertThat(Stub.text("stub_called")).isEqualTo(function);
        for (int i = 0; i < arguments.length; i++) {
            assertThat(Stub.number("stub_argument", i))
                    .as("argument " + i + " of " + function)
                    .isEqualTo(arguments[i]);
        }
    }
}
