package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.net.MulticastSocket;
import java.net.NetworkInterface;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.it.lab.QueuePairLoop.Completion;
import org.verbena.it.lab.QueuePairLoop.Side;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.AddressHandle;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.CompletionReader;
import org.verbena.verbs.Context;
import org.verbena.verbs.EthernetAddress;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.MemoryWindow;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.WorkRequestBuilder;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.address.Rate;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.AdviceKind;
import org.verbena.verbs.memory.ForkStatus;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.packet.Counters;
import org.verbena.verbs.packet.EspAssociation;
import org.verbena.verbs.packet.EspKey;
import org.verbena.verbs.packet.EspParameters;
import org.verbena.verbs.packet.Flow;
import org.verbena.verbs.packet.FlowAction;
import org.verbena.verbs.packet.FlowEffect;
import org.verbena.verbs.packet.FlowField;
import org.verbena.verbs.packet.FlowHeader;
import org.verbena.verbs.packet.FlowMatch;
import org.verbena.verbs.packet.FlowRule;
import org.verbena.verbs.packet.FlowRuleType;
import org.verbena.verbs.packet.ReceiveWorkQueue;
import org.verbena.verbs.packet.TagList;
import org.verbena.verbs.queue.CompletionQueueFlag;
import org.verbena.verbs.queue.EnhancedConnection;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.queue.RateLimit;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;
import org.verbena.verbs.work.WorkCompletionOpcode;
import org.verbena.verbs.work.WorkRequestOpcode;

/**
 * What the verbs have beyond reliable connections: used where soft RoCE has it, and answered clearly where no lab
 * device does.
 */
@Tag("lab")
@Timeout(350)
class VerbsSurfaceTest {
    private static final int SIGNALED = SendFlags.SIGNALED;
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(16, 16, 2, 2, 64);
    private static final int QKEY = 0x11111111;

    /** A receive of a datagram begins with this much of header. */
    private static final int GLOBAL_ROUTE_BYTES = 40;

    @Test
    void theLibraryDescribesWhatItReports() {
        assertThat(Verbs.describe(NodeType.RNIC)).isEqualTo("iWARP NIC");
        assertThat(Verbs.describe(PortState.ACTIVE)).isEqualToIgnoringCase("active");
        assertThat(Verbs.describe(org.verbena.verbs.device.AsyncEventType.SRQ_LIMIT_REACHED))
                .contains("SRQ");
        assertThat(Verbs.describe(CompletionStatus.WR_FLUSH_ERR)).contains("Flush");
        assertThat(Rate.RATE_100_GBPS.megabitsPerSecond()).isEqualTo(103125);
        assertThat(Rate.RATE_10_GBPS.multiple()).isEqualTo(4);
        assertThat(Rate.ofMultiple(4)).isEqualTo(Rate.RATE_10_GBPS);
        assertThat(Rate.ofMegabitsPerSecond(2500)).isEqualTo(Rate.RATE_2_5_GBPS);
        assertThat(Verbs.forkStatus()).isIn((Object[]) ForkStatus.values());
    }

    @ParameterizedTest
    @EnumSource
    void extendedAttributesBeginWithThePlainOnes(LabDevice device) {
        try (Context context = Verbs.device(device.deviceName()).open()) {
            ExtendedDeviceAttributes extended = context.queryDeviceExtended();
            assertThat(extended.basic()).isEqualTo(context.queryDevice());
            assertThat(extended.maxDeviceMemoryBytes()).isZero();
        }
    }

    @Test
    void aTypeOneWindowGivesItsRightsAndNoOthers() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect();
                Arena arena = Arena.ofShared();
                MemoryRegion bindable = loop.domain.registerMemory(
                        arena.allocate(4096, 4096),
                        EnumSet.of(
                                AccessFlag.LOCAL_WRITE,
                                AccessFlag.MW_BIND,
                                AccessFlag.REMOTE_READ,
                                AccessFlag.REMOTE_WRITE))) {
            try (MemoryWindow window = loop.domain.allocateMemoryWindow(WindowType.TYPE_1)) {
                window.bind(loop.right.queuePair, 1, SIGNALED, bindable, 1024, 64, EnumSet.of(AccessFlag.REMOTE_WRITE));
                assertThat(loop.right.next().opcode()).isEqualTo(WorkCompletionOpcode.BIND_MW);
                write(loop.left, 2, bindable.address() + 1024, window.remoteKey(), 64);
                assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
                // A right that the region has and the window has not.
                loop.left
                        .queuePair
                        .sendQueue()
                        .read(3, SIGNALED, bindable.address() + 1024, window.remoteKey())
                        .sge(loop.left.region, 0, 64);
                loop.left.queuePair.sendQueue().flush();
                assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
            }
        }
    }

    private static void write(Side from, long id, long address, int key, int length) {
        from.queuePair.sendQueue().write(id, SIGNALED, address, key).sge(from.region, 0, length);
        from.queuePair.sendQueue().flush();
    }

    @Test
    void aTypeTwoWindowIsInvalidatedByEitherSide() {
        Set<AccessFlag> writable = EnumSet.of(AccessFlag.REMOTE_WRITE);
        for (boolean byPeer : new boolean[] {false, true}) {
            try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect();
                    Arena arena = Arena.ofShared();
                    MemoryRegion bindable = loop.domain.registerMemory(
                            arena.allocate(4096, 4096),
                            EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.MW_BIND, AccessFlag.REMOTE_WRITE));
                    MemoryWindow window = loop.domain.allocateMemoryWindow(WindowType.TYPE_2)) {
                assertThatThrownBy(() -> window.bind(loop.right.queuePair, 1, 0, bindable, 0, 64, writable))
                        .hasMessageContaining("SendQueue.bindWindow");
                assertThatThrownBy(() -> loop.right
                                .queuePair
                                .sendQueue()
                                .bindWindow(1, 0, window, 0, loop.right.region, 0, 64, writable))
                        .hasMessageContaining("without MW_BIND");
                int key = MemoryWindow.nextKey(window.remoteKey());
                loop.right.queuePair.sendQueue().bindWindow(1, SIGNALED, window, key, bindable, 0, 64, writable);
                loop.right.queuePair.sendQueue().flush();
                Completion bound = loop.right.next();
                assertThat(bound.status()).isEqualTo(CompletionStatus.SUCCESS);
                assertThat(bound.opcode()).isEqualTo(WorkCompletionOpcode.BIND_MW);
                loop.left.memory().setString(0, "while bound");
                write(loop.left, 2, bindable.address(), key, 64);
                assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
                assertThat(bindable.segment().getString(0)).isEqualTo("while bound");
                if (byPeer) {
                    loop.right.queuePair.receiveQueue().receive(9).sge(loop.right.region, 0, 64);
                    loop.right.queuePair.receiveQueue().flush();
                    loop.left
                            .queuePair
                            .sendQueue()
                            .sendWithInvalidate(3, SIGNALED, key)
                            .sge(loop.left.region, 0, 8);
                    loop.left.queuePair.sendQueue().flush();
                    assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
                    assertThat(loop.right.next().id()).isEqualTo(9);
                } else {
                    loop.right.queuePair.sendQueue().localInvalidate(4, SIGNALED, key);
                    loop.right.queuePair.sendQueue().flush();
                    assertThat(loop.right.next().opcode()).isEqualTo(WorkCompletionOpcode.LOCAL_INV);
                }
                loop.left.memory().setString(0, "afterwards");
                write(loop.left, 5, bindable.address(), key, 64);
                assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
                assertThat(bindable.segment().getString(0)).isEqualTo("while bound");
            }
        }
    }

    @Test
    void unreliableConnectionsSendAndWrite() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.UC).connect()) {
            loop.left.memory().setString(0, "unreliable");
            loop.right.queuePair.receiveQueue().receive(1).sge(loop.right.region, 0, 64);
            loop.right.queuePair.receiveQueue().flush();
            loop.left.queuePair.sendQueue().send(2, SIGNALED).sge(loop.left.region, 0, 11);
            loop.left
                    .queuePair
                    .sendQueue()
                    .write(3, SIGNALED, loop.right.region.address() + 100, loop.right.region.remoteKey())
                    .sge(loop.left.region, 0, 11);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().id()).isEqualTo(2);
            assertThat(loop.left.next().id()).isEqualTo(3);
            assertThat(loop.right.next().lengthBytes()).isEqualTo(11);
            assertThat(loop.right.memory().getString(0)).isEqualTo("unreliable");
            awaitString(loop.right.memory(), 100, "unreliable");
        }
    }

    private static void awaitString(MemorySegment memory, long offset, String expected) {
        long deadline = System.nanoTime() + Patience.LIMIT.toNanos();
        while (!memory.getString(offset).equals(expected)) {
            assertThat(System.nanoTime()).isLessThan(deadline);
            Thread.onSpinWait();
        }
    }

    @Test
    void datagramsGoAndAreAnsweredByTheirCompletion() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.UD).connect();
                WorkCompletions polled = new WorkCompletions(1);
                AddressHandle handle = loop.domain.createAddressHandle(AddressVector.global(
                        1, GlobalRoute.to(loop.gid().gid(), loop.gid().index())))) {
            post(loop.right, 1);
            post(loop.left, 2);
            loop.left.memory().setString(0, "question");
            loop.left
                    .queuePair
                    .sendQueue()
                    .sendWithImmediate(3, SIGNALED, 77)
                    .to(handle, loop.right.queuePair.number(), QKEY)
                    .sge(loop.left.region, 0, 9);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            long deadline = System.nanoTime() + Patience.LIMIT.toNanos();
            while (loop.right.completions.poll(polled) == 0) {
                assertThat(System.nanoTime()).isLessThan(deadline);
            }
            assertThat(polled.isSuccess(0)).isTrue();
            assertThat(polled.lengthBytes(0)).isEqualTo(GLOBAL_ROUTE_BYTES + 9);
            assertThat(polled.immediateData(0)).isEqualTo(77);
            assertThat(polled.sourceQueuePairNumber(0)).isEqualTo(loop.left.queuePair.number());
            assertThat(loop.right.memory().getString(RECEIVE_AT + GLOBAL_ROUTE_BYTES))
                    .isEqualTo("question");
            MemorySegment header = loop.right.memory().asSlice(RECEIVE_AT, GLOBAL_ROUTE_BYTES);
            if (polled.hasGlobalRouteHeader(0)) {
                AddressVector sender = loop.context.addressOfSender(1, polled, 0, header);
                assertThat(sender.route()).isNotNull();
            }
            try (AddressHandle back = loop.domain.createAddressHandle(1, polled, 0, header)) {
                loop.right
                        .queuePair
                        .sendQueue()
                        .send(4, SIGNALED)
                        .to(back, polled.sourceQueuePairNumber(0), QKEY)
                        .inline(MemorySegment.ofArray("answer\0".getBytes(StandardCharsets.UTF_8)), 0, 7);
                loop.right.queuePair.sendQueue().flush();
                assertThat(loop.right.next().opcode()).isEqualTo(WorkCompletionOpcode.SEND);
                assertThat(loop.left.next().lengthBytes()).isEqualTo(GLOBAL_ROUTE_BYTES + 7);
                assertThat(loop.left.memory().getString(RECEIVE_AT + GLOBAL_ROUTE_BYTES))
                        .isEqualTo("answer");
            }
        }
    }

    private static final int RECEIVE_AT = 8192;

    private static void post(Side side, long id) {
        side.queuePair.receiveQueue().receive(id).sge(side.region, RECEIVE_AT, 2048);
        side.queuePair.receiveQueue().flush();
    }

    @Test
    void multicastReachesWhoeverIsAttached() throws Exception {
        // ::ffff:239.1.2.3, as librdmacm maps IPv4 groups on RoCE v2.
        Gid group = Gid.of(new byte[] {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (byte) 0xff, (byte) 0xff, (byte) 239, 1, 2, 3});
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.UD).connect();
                MulticastSocket network = new MulticastSocket();
                AddressHandle handle = loop.domain.createAddressHandle(
                        AddressVector.global(1, GlobalRoute.to(group, loop.gid().index())))) {
            // A queue pair that is attached by hand does not tell the network; this does.
            network.joinGroup(new InetSocketAddress("239.1.2.3", 0), NetworkInterface.getByName("roce"));
            loop.right.queuePair.attachMulticast(group, 0);
            post(loop.right, 1);
            loop.left.memory().setString(0, "to all");
            loop.left
                    .queuePair
                    .sendQueue()
                    .send(2, SIGNALED)
                    .to(handle, 0xffffff, QKEY)
                    .sge(loop.left.region, 0, 7);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(loop.right.next().lengthBytes()).isEqualTo(GLOBAL_ROUTE_BYTES + 7);
            assertThat(loop.right.memory().getString(RECEIVE_AT + GLOBAL_ROUTE_BYTES))
                    .isEqualTo("to all");
            assertThatThrownBy(loop.right.queuePair::close)
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("attached to [" + group + "]")
                    .hasMessageContaining("EBUSY")
                    .hasMessageContaining("detach it first");
            assertThat(loop.right.queuePair.isOpen()).isTrue();
            loop.right.queuePair.detachMulticast(group, 0);
            assertThatThrownBy(() -> loop.right.queuePair.detachMulticast(group, 0))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("ibv_detach_mcast");
        }
    }

    @Test
    void extendedQueuesTellTheFieldsThatWereAskedFor() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue extended = loop.context.createExtendedCompletionQueue(
                        64,
                        loop.channel,
                        0,
                        EnumSet.of(CompletionField.BYTE_LEN, CompletionField.IMM, CompletionField.QP_NUM),
                        EnumSet.of(CompletionQueueFlag.SINGLE_THREADED));
                QueuePair reading = loop.domain.createQueuePair(QueuePairOptions.reliable(extended, SIZES));
                MemoryRegion region =
                        loop.domain.registerMemory(Arena.ofAuto().allocate(4096, 4096), QueuePairLoop.ALL_RIGHTS)) {
            QueuePairLoop.Side side = loop.foreignSide(reading, extended, region);
            loop.connect(loop.left, side);
            CompletionReader reader = extended.reader();
            assertThat(reader.tryNext()).isFalse();
            assertThatThrownBy(reader::workRequestId).isInstanceOf(IllegalStateException.class);
            for (int round = 0; round < 100; round++) {
                extended.requestNotify(false);
                reading.receiveQueue().receive(round).sge(region, 0, 64);
                reading.receiveQueue().flush();
                loop.left
                        .queuePair
                        .sendQueue()
                        .sendWithImmediate(round, SIGNALED, round * 3)
                        .sge(loop.left.region, 0, round % 64);
                loop.left.queuePair.sendQueue().flush();
                assertThat(loop.channel.awaitEvent(Patience.LIMIT)).isSameAs(extended);
                assertThat(reader.tryNext()).isTrue();
                assertThat(reader.workRequestId()).isEqualTo(round);
                assertThat(reader.status()).isEqualTo(CompletionStatus.SUCCESS);
                assertThat(reader.opcode()).isEqualTo(WorkCompletionOpcode.RECV);
                assertThat(reader.lengthBytes()).isEqualTo(round % 64);
                assertThat(reader.immediateData()).isEqualTo(round * 3);
                assertThat(reader.queuePairNumber()).isEqualTo(reading.number());
                assertThatThrownBy(reader::timestamp).hasMessageContaining("COMPLETION_TIMESTAMP was not requested");
                assertThat(reader.tryNext()).isFalse();
                assertThat(loop.left.next().id()).isEqualTo(round);
            }
            assertThatThrownBy(() -> loop.left.completions.reader()).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> loop.context.createExtendedCompletionQueue(
                            8, null, 0, EnumSet.of(CompletionField.COMPLETION_TIMESTAMP)))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("EOPNOTSUPP");
        }
    }

    @Test
    void aCompletionQueueWithAFlagThatTheKernelLacksIsRefused() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC)) {
            assertThatThrownBy(() -> loop.context.createExtendedCompletionQueue(
                            8,
                            null,
                            0,
                            EnumSet.of(CompletionField.BYTE_LEN),
                            EnumSet.of(CompletionQueueFlag.IGNORE_OVERRUN)))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("EOPNOTSUPP")
                    .hasMessageContaining("IGNORE_OVERRUN");
        }
    }

    @Test
    void theBuilderWritesAndSends() {
        Set<SendOperation> operations = EnumSet.of(SendOperation.SEND, SendOperation.RDMA_WRITE);
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue completions = loop.context.createCompletionQueue(64);
                QueuePair building = loop.domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES), QueuePairExtension.building(operations));
                MemoryRegion region =
                        loop.domain.registerMemory(Arena.ofAuto().allocate(4096, 4096), QueuePairLoop.ALL_RIGHTS)) {
            Side side = loop.foreignSide(building, completions, region);
            loop.connect(loop.left, side);
            WorkRequestBuilder builder = building.builder();
            long remote = loop.left.region.address();
            int key = loop.left.region.remoteKey();
            for (int i = 0; i < 2; i++) {
                loop.left.queuePair.receiveQueue().receive(i).sge(loop.left.region, 32_768, 64);
            }
            loop.left.queuePair.receiveQueue().flush();
            region.segment().setString(0, "built");
            builder.start();
            assertThatThrownBy(builder::start).isInstanceOf(IllegalStateException.class);
            builder.send(1, SIGNALED).sge(region, 0, 6);
            builder.send(2, SIGNALED | SendFlags.INLINE).inline(region.segment().asSlice(0, 5));
            builder.write(3, SIGNALED, remote, key).sge(region, 0, 6);
            builder.complete();
            // A send queue may post to the same queue pair in between.
            building.sendQueue()
                    .write(4, SIGNALED, remote + 100, key)
                    .sge(region, 0, 6)
                    .flush();
            for (int id = 1; id <= 4; id++) {
                Completion done = side.next();
                assertThat(done.id()).isEqualTo(id);
                assertThat(done.status()).isEqualTo(CompletionStatus.SUCCESS);
            }
            assertThat(loop.left.next().lengthBytes()).isEqualTo(6);
            assertThat(loop.left.next().lengthBytes()).isEqualTo(5);
            assertThat(loop.left.memory().getString(0)).isEqualTo("built");
            assertThat(loop.left.memory().getString(100)).isEqualTo("built");
            // What was not asked for, or does not fit, is refused, and the batch is given up.
            builder.start();
            assertThatThrownBy(() -> builder.flush(1, 0, remote, key, 8, false, false))
                    .hasMessageContaining("FLUSH is not among");
            builder.write(8, SIGNALED, remote, key);
            assertThatThrownBy(() -> builder.sge(region, 4090, 7)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(builder::complete).hasMessageContaining("abort it");
            builder.abort();
            builder.start();
            builder.write(9, SIGNALED, remote, key).sge(region, 0, 8);
            builder.complete();
            assertThat(side.next().id()).isEqualTo(9);
        }
    }

    @Test
    void atomicsOfTwoThreadsAddUp() throws Exception {
        try (QueuePairLoop one = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            int rounds = 200;
            Set<Long> seen = ConcurrentHashMap.newKeySet();
            MemoryRegion counter = one.right.region;
            counter.segment().set(ValueLayout.JAVA_LONG, 0, 0);
            // Both ends add to the same word: left remotely, right remotely through the loop back to itself.
            List<Thread> threads = List.of(one.left, one.right).stream()
                    .map(side -> Thread.ofPlatform().start(() -> {
                        for (int i = 0; i < rounds; i++) {
                            side.queuePair
                                    .sendQueue()
                                    .fetchAndAdd(
                                            i, SIGNALED, counter.address(), counter.remoteKey(), 1, side.region, 64);
                            side.queuePair.sendQueue().flush();
                            if (side.next().status() == CompletionStatus.SUCCESS) {
                                seen.add(side.memory().get(ValueLayout.JAVA_LONG, 64));
                            }
                        }
                    }))
                    .toList();
            for (Thread thread : threads) {
                thread.join();
            }
            assertThat(counter.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(2L * rounds);
            // Each addition saw a value that no other saw.
            assertThat(seen).hasSize(2 * rounds);
        }
    }

    @ParameterizedTest
    @EnumSource
    void whatADeviceLacksIsAnsweredClearly(LabDevice device) {
        try (Context context = Verbs.device(device.deviceName()).open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(16);
                QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES));
                MemoryRegion region = domain.registerMemory(
                        Arena.ofAuto().allocate(4096, 4096), EnumSet.of(AccessFlag.LOCAL_WRITE))) {
            assertUnsupported("ibv_alloc_dm", () -> context.allocateDeviceMemory(4096, 0));
            assertUnsupported("ibv_alloc_null_mr", domain::allocateNullRegion);
            assertUnsupported("ibv_open_xrcd", context::openXrcDomain);
            assertUnsupported("ibv_create_srq_ex", () -> TagList.create(domain, 4, 1, 4, 4, completions));
            assertUnsupported("ibv_alloc_td", context::allocateThreadDomain);
            assertUnsupported("ibv_alloc_parent_domain", () -> context.allocateParentDomain(domain, null));
            assertUnsupported("ibv_modify_cq", () -> completions.moderate(16, 10));
            assertUnsupported("ibv_query_rt_values_ex", context::queryRawClock);
            assertUnsupported("ibv_modify_qp_rate_limit", () -> queuePair.modifyRateLimit(new RateLimit(1000, 0, 0)));
            assertUnsupported("ibv_query_ece", queuePair::queryEnhancedConnection);
            assertUnsupported("ibv_set_ece", () -> queuePair.setEnhancedConnection(new EnhancedConnection(1, 2)));
            assertUnsupported(
                    "ibv_rereg_mr", () -> region.reregister(region.segment(), Set.of(AccessFlag.LOCAL_WRITE)));
            assertThatThrownBy(() -> region.advise(AdviceKind.PREFETCH, true, 0, 64))
                    .isInstanceOf(VerbsException.class);
            assertThatThrownBy(() -> domain.registerDmaBuffer(0, 0, 4096, 0, EnumSet.of(AccessFlag.LOCAL_WRITE)))
                    .isInstanceOf(VerbsException.class);
            assertThatThrownBy(() -> domain.registerMemory(
                            region.segment(), EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.ON_DEMAND)))
                    .isInstanceOf(VerbsException.class);
            assertThat(queuePair.isDataInOrder(WorkRequestOpcode.RDMA_WRITE)).isFalse();
            assertThatThrownBy(() -> Context.importDevice(context.commandFd())).isInstanceOf(VerbsException.class);
            assertThatThrownBy(() -> context.importProtectionDomain(domain.handle()))
                    .isInstanceOf(VerbsException.class);
            assertThatThrownBy(() -> domain.importMemory(
                            region.handle(), region.address(), region.lengthBytes(), region.access()))
                    .isInstanceOf(VerbsException.class);
            assertThatThrownBy(() -> context.importDeviceMemory(1, 4096)).isInstanceOf(VerbsException.class);
        }
    }

    private static void assertUnsupported(String function, org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining(function)
                .hasMessageContaining("EOPNOTSUPP")
                .hasMessageContaining("does not support this function");
    }

    @ParameterizedTest
    @EnumSource
    void packetsAreNeitherSteeredNorSpread(LabDevice device) {
        try (Context context = Verbs.device(device.deviceName()).open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(16);
                QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES))) {
            FlowRule rule = FlowRule.steering(
                    1, FlowMatch.of(FlowHeader.UDP).field(FlowField.DESTINATION_PORT, 4791), FlowEffect.drop());
            assertUnsupported("ibv_create_flow", () -> Flow.create(queuePair, rule));
            assertUnsupported("ibv_create_flow", () -> Flow.create(queuePair, FlowRule.of(FlowRuleType.SNIFFER, 1)));
            assertUnsupported("ibv_create_counters", () -> Counters.create(context));
            assertUnsupported("ibv_create_wq", () -> ReceiveWorkQueue.create(domain, 1, 1, completions, Set.of()));
            EspKey key = new EspKey(new byte[16], new byte[4], new byte[8], 16);
            assertUnsupported(
                    "ibv_create_flow_action_esp",
                    () -> FlowAction.create(context, EspParameters.of(EspAssociation.inlineCrypto(Set.of()), key)));
        }
    }

    @Test
    void siwHasNoWindows() {
        try (Context context = Verbs.device("siw0").open();
                ProtectionDomain domain = context.allocateProtectionDomain()) {
            assertUnsupported("ibv_alloc_mw", () -> domain.allocateMemoryWindow(WindowType.TYPE_1));
        }
    }

    @Test
    void memoryIsRegisteredUnderOtherAddresses() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect();
                Arena arena = Arena.ofShared();
                MemoryRegion moved =
                        loop.domain.registerMemoryAt(arena.allocate(4096, 4096), 0x10000, QueuePairLoop.ALL_RIGHTS);
                MemoryRegion relaxed = loop.domain.registerMemory(
                        arena.allocate(64), EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.RELAXED_ORDERING))) {
            assertThat(moved.address()).isEqualTo(0x10000);
            assertThat(relaxed.localKey()).isNotZero();
            loop.left.memory().setString(0, "moved");
            write(loop.left, 1, 0x10000 + 256, moved.remoteKey(), 6);
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(moved.segment().getString(256)).isEqualTo("moved");
        }
    }

    @Test
    void ethernetAddressesAreResolved() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC)) {
            EthernetAddress ethernet = loop.context.resolveEthernet(AddressVector.global(
                    1, GlobalRoute.to(loop.gid().gid(), loop.gid().index())));
            assertThat(ethernet.vlan()).isEqualTo(EthernetAddress.NO_VLAN);
            assertThat(ethernet.mac()).hasSize(6);
        }
    }
}
