package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.DeviceCapability;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.SendOperation;

/** Objects own what C made, in the right order, and say what is wrong. */
@Timeout(240)
class ObjectTreeTest {
    private static final Set<AccessFlag> WRITE = EnumSet.of(AccessFlag.LOCAL_WRITE);
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(4, 4, 2, 2, 16);

    private final Arena arena = Arena.ofShared();

    @BeforeEach
    void installStub() throws Exception {
        Stub.install();
    }

    @AfterEach
    void nothingLeaks() {
        arena.close();
        assertThat(Stub.live()).isZero();
    }

    @Test
    void listsDevices() {
        assertThat(Verbs.unavailabilityCause()).isNull();
        assertThat(Verbs.devices())
                .containsExactly(new Device(
                        "stub0",
                        "uverbs0",
                        7,
                        0x020456fffe789abcL,
                        NodeType.CA,
                        TransportType.IB,
                        "/sys/class/infiniband/stub0"));
        assertThat(Verbs.device("stub0").guidText()).isEqualTo("0204:56ff:fe78:9abc");
    }

    @Test
    void saysWhatToDoWithoutDevice() {
        Stub.call("stub_devices", 0);
        assertThat(Verbs.devices()).isEmpty();
        assertThat(Verbs.unavailabilityCause()).hasMessageContaining("rdma link add");
        assertThatThrownBy(() -> Verbs.device("mlx5_0"))
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("ENODEV")
                .hasMessageContaining("modprobe rdma_rxe");
    }

    @Test
    void listsTheDevicesThereAreForAWrongName() {
        assertThatThrownBy(() -> Verbs.device("mlx5_0")).hasMessageContaining("there are stub0");
        assertThatThrownBy(() -> new Device("gone", "", 0, 0, NodeType.CA, TransportType.IB, "").open())
                .hasMessageContaining("there are stub0");
    }

    @Test
    void saysWhyDevicesCannotBeListed() {
        Stub.failNext("ibv_get_device_list", Errno.ENOSYS);
        assertThat(Verbs.unavailabilityCause())
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("ENOSYS")
                .hasMessageContaining("modprobe ib_uverbs");
        Stub.failNext("ibv_get_device_list", Errno.EPERM);
        assertThatThrownBy(Verbs::devices).hasMessageContaining("EPERM").hasMessageContaining("permissions");
    }

    @Test
    void saysWhyADeviceCannotBeOpened() {
        Device device = Verbs.device("stub0");
        Stub.failNext("ibv_open_device", Errno.EACCES);
        assertThatThrownBy(device::open)
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("ibv_open_device(stub0) failed with EACCES")
                .hasMessageContaining("/dev/infiniband/uverbs*");
    }

    @Test
    void refusesAnUnknownAbi() {
        Device device = Verbs.device("stub0");
        Stub.call("stub_break_abi", 1);
        assertThatThrownBy(Verbs::devices)
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("ibv_device.name")
                .hasMessageContaining("Install rdma-core");
        for (int what = 2; what <= 4; what++) {
            Stub.call("stub_break_abi", what);
            assertThatThrownBy(device::open)
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("has an ABI that this version of Verbena does not know");
        }
        // A context that was refused is given back.
        assertThat(Stub.live()).isZero();
    }

    @Test
    void queriesDeviceAndPort() {
        try (Context context = Verbs.device("stub0").open()) {
            DeviceAttributes device = context.queryDevice();
            assertThat(device.firmwareVersion()).isEqualTo("1.2.3");
            assertThat(device.nodeGuid()).isEqualTo(0x1122334455667788L);
            assertThat(device.maxPkeys()).isEqualTo(65535);
            assertThat(device.capabilities())
                    .containsExactlyInAnyOrder(DeviceCapability.XRC, DeviceCapability.MEM_WINDOW);
            assertThat(device.has(DeviceCapability.XRC, DeviceCapability.MEM_WINDOW))
                    .isTrue();
            assertThat(device.has(DeviceCapability.XRC, DeviceCapability.SRQ_RESIZE))
                    .isFalse();
            PortAttributes port = context.queryPort(1);
            assertThat(port.state()).isEqualTo(PortState.ACTIVE);
            assertThat(port.activeMtu()).isEqualTo(Mtu.MTU_1024);
            assertThat(port.maxMessageBytes()).isEqualTo(1L << 31);
            assertThat(port.gigabitsPerSecond()).isEqualTo(100.0);
            assertThat(port.capabilityFlags2()).isEqualTo(0x8001);
            assertThatThrownBy(() -> context.queryPort(2))
                    .hasMessageContaining("port=2")
                    .hasMessageContaining("EINVAL");
            assertThatThrownBy(() -> context.queryPort(0)).isInstanceOf(IllegalArgumentException.class);
        }
    }

    /** ConnectX-8: XDR is 256 in C's encoding, which the older field of eight bits cannot say. */
    @ParameterizedTest
    @CsvSource({"2, 800", "4, 1600"})
    void readsTheSpeedsOfXdr(int width, double gigabits) {
        try (Context context = Verbs.device("stub0").open()) {
            Stub.call("stub_link", 256, width);
            PortAttributes port = context.queryPort(1);
            assertThat(port.activeSpeed()).isEqualTo(256);
            assertThat(port.gigabitsPerSecondPerLane()).isEqualTo(200.0);
            assertThat(port.gigabitsPerSecond()).isEqualTo(gigabits);
            assertThat(context.gigabitsPerSecond(1)).isEqualTo(gigabits);
            Stub.call("stub_effective_speed", 4_005);
            assertThat(context.gigabitsPerSecond(1)).isEqualTo(400.5);
        } finally {
            Stub.call("stub_effective_speed", 0);
            Stub.call("stub_link", 0, 2);
        }
    }

    @Test
    void queriesPortsThroughTheExportedFunctionWhereTheContextIsOlder() {
        Stub.call("stub_break_abi", 5); // a verbs_context that does not reach up to query_port
        try (Context context = Verbs.device("stub0").open()) {
            PortAttributes port = context.queryPort(1);
            assertThat(port.linkLayer()).isEqualTo(LinkLayer.ETHERNET);
            assertThat(port.capabilityFlags2()).isZero(); // not in the older struct
        }
    }

    @Test
    void readsGidsWithTheirRoceType() {
        try (Context context = Verbs.device("stub0").open()) {
            GidEntry entry = context.queryGid(1, 1);
            assertThat(entry.type()).isEqualTo(GidType.ROCE_V2);
            assertThat(entry.gid().toInetAddress().getHostAddress()).isEqualTo("10.0.0.1");
            assertThat(entry.gid()).hasToString("0000:0000:0000:0000:0000:ffff:0a00:0001");
            assertThat(entry.networkInterfaceIndex()).isEqualTo(3);
            assertThat(context.queryGids()).hasSize(2).contains(entry);
            assertThatThrownBy(() -> context.queryGid(1, 3)).hasMessageContaining("ENODATA");
            assertThat(context.queryPkey(1, 0)).isEqualTo(0xffff);
            assertThat(context.pkeyIndex(1, 0xffff)).isZero();
            assertThatThrownBy(() -> context.pkeyIndex(1, 0x8001)).hasMessageContaining("0x8001");
        }
    }

    @Test
    void closingAParentNamesItsLiveChildren() {
        Context context = Verbs.device("stub0").open();
        ProtectionDomain domain = context.allocateProtectionDomain();
        CompletionChannel channel = context.createCompletionChannel();
        CompletionQueue completions = context.createCompletionQueue(8, channel, 0);
        SharedReceiveQueue receives = domain.createSharedReceiveQueue(8, 1);
        MemoryRegion region = domain.registerMemory(arena.allocate(64), WRITE);
        QueuePair queuePair = domain.createQueuePair(
                QueuePairOptions.reliable(completions, SIZES).withSharedReceives(receives));

        assertThatIllegalStateException()
                .isThrownBy(context::close)
                .withMessageContaining("ProtectionDomain of stub0")
                .withMessageContaining("CompletionQueue of stub0");
        assertThatIllegalStateException()
                .isThrownBy(domain::close)
                .withMessageContaining("MemoryRegion of 64 bytes")
                .withMessageContaining("RC QueuePair " + queuePair.number());
        assertThatIllegalStateException().isThrownBy(completions::close).withMessageContaining("QueuePair");
        assertThatIllegalStateException().isThrownBy(channel::close).withMessageContaining("CompletionQueue");
        assertThatIllegalStateException().isThrownBy(receives::close).withMessageContaining("QueuePair");

        for (VerbsObject object :
                new VerbsObject[] {queuePair, region, receives, completions, channel, domain, context}) {
            object.close();
            object.close(); // idempotent
            assertThat(object.isOpen()).isFalse();
        }
        assertThatIllegalStateException().isThrownBy(context::queryDevice).withMessage("Context of stub0 is closed");
        assertThatIllegalStateException().isThrownBy(context::allocateProtectionDomain);
        assertThatIllegalStateException().isThrownBy(() -> domain.registerMemory(arena.allocate(64), WRITE));
        assertThatIllegalStateException().isThrownBy(channel::tryGetEvent);
        assertThatIllegalStateException().isThrownBy(() -> completions.requestNotify(false));
        assertThatIllegalStateException().isThrownBy(queuePair::queryState);
        assertThatIllegalStateException().isThrownBy(() -> queuePair.sendQueue().send(1, 0));
        assertThatIllegalStateException().isThrownBy(queuePair.sendQueue()::flush);
        assertThatIllegalStateException()
                .isThrownBy(() -> receives.receiveQueue().receive(1));
        try (WorkCompletions into = new WorkCompletions(1)) {
            assertThatIllegalStateException().isThrownBy(() -> completions.poll(into));
        }
    }

    @Test
    void countsTheChildrenThatItDoesNotName() {
        try (Context context = Verbs.device("stub0").open()) {
            ProtectionDomain domain = context.allocateProtectionDomain();
            MemoryRegion[] regions = new MemoryRegion[12];
            for (int i = 0; i < regions.length; i++) {
                regions[i] = domain.registerMemory(arena.allocate(8), WRITE);
            }
            assertThatIllegalStateException().isThrownBy(domain::close).withMessageContaining("and 7 more");
            for (MemoryRegion region : regions) {
                region.close();
            }
            domain.close();
        }
    }

    @Test
    void staysOpenWhenTheSystemRefusesToClose() {
        try (Context context = Verbs.device("stub0").open();
                ProtectionDomain domain = context.allocateProtectionDomain()) {
            Stub.failNext("ibv_dealloc_pd", Errno.EBUSY);
            assertThatThrownBy(domain::close)
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("EBUSY")
                    .hasMessageContaining("close what depends on it");
            assertThat(domain.isOpen()).isTrue();
            assertThatIllegalStateException().isThrownBy(context::close);
        }
    }

    @Test
    void failedCreationLeavesItsParentsClosable() {
        try (Context context = Verbs.device("stub0").open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionChannel channel = context.createCompletionChannel();
                CompletionQueue completions = context.createCompletionQueue(8)) {
            for (String function : new String[] {"ibv_reg_mr", "ibv_create_cq", "ibv_create_qp", "ibv_create_srq"}) {
                Stub.failNext(function, Errno.ENOMEM);
            }
            assertThatThrownBy(() -> domain.registerMemory(arena.allocate(64), WRITE))
                    .hasMessageContaining("ENOMEM");
            assertThatThrownBy(() -> context.createCompletionQueue(8, channel, 0))
                    .hasMessageContaining("ENOMEM");
            assertThatThrownBy(() -> domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES)))
                    .hasMessageContaining("ENOMEM");
            assertThatThrownBy(() -> domain.createSharedReceiveQueue(1, 1)).hasMessageContaining("ENOMEM");
        }
    }

    @Test
    void destroysWhatHasAnUnknownAbi() {
        Context context = Verbs.device("stub0").open();
        ProtectionDomain domain = context.allocateProtectionDomain();
        CompletionChannel channel = context.createCompletionChannel();
        CompletionQueue completions = context.createCompletionQueue(8, channel, 0);
        QueuePairOptions options = QueuePairOptions.reliable(completions, SIZES);
        QueuePair queuePair = domain.createQueuePair(options);
        QueuePairExtension building = new QueuePairExtension(EnumSet.of(SendOperation.SEND), Set.of(), null, 0, 0);
        int live = Stub.live();
        Stub.call("stub_break_abi", 7);
        List<ThrowingCallable> creations = List.of(
                context::allocateProtectionDomain,
                () -> context.allocateParentDomain(domain, null),
                context::createCompletionChannel,
                () -> context.createCompletionQueue(8, channel, 0),
                () -> context.createExtendedCompletionQueue(8, channel, 0, EnumSet.allOf(CompletionField.class)),
                () -> domain.registerMemory(arena.allocate(64), WRITE),
                () -> domain.allocateMemoryWindow(WindowType.TYPE_2),
                () -> domain.createSharedReceiveQueue(8, 1),
                () -> domain.createQueuePair(options),
                () -> domain.createQueuePair(options, building));
        for (ThrowingCallable creation : creations) {
            assertThatThrownBy(creation)
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("has an ABI that this version of Verbena does not know");
            assertThat(Stub.live()).isEqualTo(live);
        }
        Stub.call("stub_break_abi", 0);
        // None of them is a child, and the channel has its number for the next queue.
        context.createCompletionQueue(8, channel, 0).close();
        for (VerbsObject object : new VerbsObject[] {queuePair, completions, channel, domain, context}) {
            object.close();
        }
    }

    @Test
    void explainsTheLockedMemoryLimitWithItsValue() {
        try (Context context = Verbs.device("stub0").open();
                ProtectionDomain domain = context.allocateProtectionDomain()) {
            for (int errno : new int[] {Errno.ENOMEM, Errno.EPERM}) {
                Stub.failNext("ibv_reg_mr", errno);
                assertThatThrownBy(() -> domain.registerMemory(arena.allocate(4096), WRITE))
                        .hasMessageContaining("ibv_reg_mr(length=4096, access=[LOCAL_WRITE])")
                        .hasMessageContaining("ulimit -l")
                        .hasMessageMatching("(?s).*; it is (unlimited|\\d+ bytes) now");
            }
        }
    }

    @Test
    void registersMemoryWithItsKeys() {
        try (Context context = Verbs.device("stub0").open();
                ProtectionDomain domain = context.allocateProtectionDomain()) {
            MemorySegment memory = arena.allocate(4096);
            try (MemoryRegion region = domain.registerMemory(memory, WRITE)) {
                assertThat(region.address()).isEqualTo(memory.address());
                assertThat(region.lengthBytes()).isEqualTo(4096);
                assertThat(region.remoteKey()).isEqualTo(region.localKey() | 0x10000);
            }
            // An optional flag takes the newer function.
            Stub.failNext("ibv_reg_mr_iova2", Errno.EINVAL);
            assertThatThrownBy(() -> domain.registerMemory(
                            memory, EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.RELAXED_ORDERING)))
                    .hasMessageContaining("ibv_reg_mr_iova2");
            assertThatThrownBy(() -> domain.registerMemory(MemorySegment.ofArray(new byte[8]), WRITE))
                    .hasMessageContaining("native");
            assertThatThrownBy(() -> domain.registerMemory(memory.asSlice(0, 0), WRITE))
                    .hasMessageContaining("empty");
            assertThatThrownBy(() -> domain.registerMemory(memory, EnumSet.of(AccessFlag.REMOTE_WRITE)))
                    .hasMessageContaining("LOCAL_WRITE");
            assertThatThrownBy(() -> domain.registerMemory(memory.asReadOnly(), WRITE))
                    .hasMessageContaining("read-only");
        }
    }

    @Test
    void wrappingLeavesForeignObjectsAlone() {
        try (Context context = Verbs.device("stub0").open();
                ProtectionDomain domain = context.allocateProtectionDomain()) {
            Context foreignContext = Context.wrap(context.nativeAddress());
            ProtectionDomain foreignDomain = ProtectionDomain.wrap(foreignContext, domain.nativeAddress());
            CompletionQueue completions = foreignContext.createCompletionQueue(4);
            QueuePairOptions options = QueuePairOptions.reliable(completions, SIZES);
            QueuePair made = foreignDomain.createQueuePair(options);
            int[] destroyed = new int[1];
            QueuePair wrapped =
                    QueuePair.wrap(foreignDomain, made.nativeAddress(), made.options(), () -> destroyed[0]++);
            assertThat(wrapped.number()).isEqualTo(made.number());
            // Memory of the domain serves queue pairs of the same domain wrapped.
            try (MemoryRegion region = domain.registerMemory(arena.allocate(64), WRITE)) {
                wrapped.sendQueue().send(1, 0).sge(region, 0, 64);
                wrapped.sendQueue().flush();
            }
            wrapped.close();
            wrapped.close();
            assertThat(destroyed[0]).isOne();
            made.close();
            completions.close();
            foreignDomain.close();
            foreignContext.close();
            assertThat(context.queryDevice().ports()).isOne();
        }
    }

    @Test
    void objectsSayWhereTheyBelong() {
        try (Context context = Verbs.device("stub0").open();
                CompletionChannel channel = context.createCompletionChannel();
                CompletionQueue notifying = context.createCompletionQueue(4, channel, 0);
                CompletionQueue polled = context.createCompletionQueue(4)) {
            assertThat(channel.context()).isSameAs(context);
            assertThat(notifying.channel()).isSameAs(channel);
            assertThat(notifying.context()).isSameAs(context);
            assertThat(polled.channel()).isNull();
        }
    }

    @Test
    void modifyNamesWhatIsMissing() {
        try (Context context = Verbs.device("stub0").open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(8);
                QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES))) {
            assertThatThrownBy(() -> queuePair.modify(QueuePairAttributes.to(QueuePairState.INIT)
                            .portNumber(1)
                            .build()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("RC queue pair RESET to INIT")
                    .hasMessageContaining("ACCESS_FLAGS")
                    .hasMessageContaining("PKEY_INDEX");
            assertThatThrownBy(() -> queuePair.modify(
                            QueuePairAttributes.to(QueuePairState.RTS).build()))
                    .hasMessageContaining("no transition");
            queuePair.modify(QueuePairAttributes.to(QueuePairState.INIT)
                    .portNumber(1)
                    .pkeyIndex(0)
                    .accessFlags(AccessFlag.REMOTE_READ)
                    .build());
            assertThat(queuePair.lastKnownState()).isEqualTo(QueuePairState.INIT);
            AddressVector address = AddressVector.global(
                    1, GlobalRoute.to(Gid.of(new byte[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}), 1));
            QueuePairAttributes.Builder ready = QueuePairAttributes.to(QueuePairState.RTR)
                    .address(address)
                    .pathMtu(Mtu.MTU_1024)
                    .receivePsn(0xabcdef)
                    .maxReadsAsTarget(4)
                    .minRnrTimer(12);
            assertThatThrownBy(() -> queuePair.modify(ready.build())).hasMessageContaining("also needs [DEST_QPN]");
            assertThatThrownBy(() -> queuePair.modify(
                            ready.destinationQueuePair(17).qkey(5).build()))
                    .hasMessageContaining("does not accept [QKEY]");
            QueuePairAttributes good = QueuePairAttributes.to(QueuePairState.RTR)
                    .address(address)
                    .pathMtu(Mtu.MTU_1024)
                    .destinationQueuePair(17)
                    .receivePsn(0xabcdef)
                    .maxReadsAsTarget(255)
                    .minRnrTimer(12)
                    .build();
            queuePair.modify(good);
            QueuePairAttributes read = queuePair.query(
                    QueuePairAttribute.STATE,
                    QueuePairAttribute.AV,
                    QueuePairAttribute.PATH_MTU,
                    QueuePairAttribute.DEST_QPN,
                    QueuePairAttribute.RQ_PSN,
                    QueuePairAttribute.MAX_DEST_RD_ATOMIC,
                    QueuePairAttribute.MIN_RNR_TIMER);
            assertThat(read).isEqualTo(good).hasSameHashCodeAs(good);
            assertThat(read.address()).isEqualTo(address);
            assertThat(read.receivePsn()).isEqualTo(0xabcdef);
            assertThat(read.maxReadsAsTarget()).isEqualTo(255);
            assertThatIllegalStateException().isThrownBy(read::qkey).withMessageContaining("QKEY is not among");
            Stub.failNext("ibv_modify_qp", Errno.ETIMEDOUT);
            assertThatThrownBy(() -> queuePair.modify(
                            QueuePairAttributes.to(QueuePairState.ERR).build()))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("did not resolve");
        }
    }

    @Test
    void attributesAreCheckedAtTheirBounds() {
        QueuePairAttributes.Builder builder = QueuePairAttributes.builder();
        assertThat(builder.timeout(31).retryCount(7).sendPsn(0xffffff).build().timeout())
                .isEqualTo(31);
        assertThatThrownBy(() -> builder.timeout(32)).hasMessage("timeout 32 is outside 0 to 31");
        assertThatThrownBy(() -> builder.retryCount(8)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> builder.sendPsn(1 << 24)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> builder.portNumber(0)).isInstanceOf(IllegalArgumentException.class);
        assertThat(Mtu.of(0)).isEqualTo(Mtu.UNKNOWN);
        assertThat(Mtu.of(5).bytes()).isEqualTo(4096);
        assertThat(Mtu.ofBytes(4096)).isEqualTo(Mtu.MTU_4096);
        assertThatThrownBy(() -> Mtu.ofBytes(0)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> builder.pathMtu(Mtu.UNKNOWN)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void asynchronousEventsFindTheirObject() {
        try (Context context = Verbs.device("stub0").open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(8);
                SharedReceiveQueue receives = domain.createSharedReceiveQueue(8, 1);
                QueuePair queuePair = domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES).withSharedReceives(receives))) {
            assertThat(context.tryGetAsyncEvent()).isNull();
            for (AsyncEventType type : AsyncEventType.values()) {
                VerbsObject source = switch (type) {
                    case CQ_ERR -> completions;
                    case SRQ_ERR, SRQ_LIMIT_REACHED -> receives;
                    case QP_FATAL,
                            QP_REQ_ERR,
                            QP_ACCESS_ERR,
                            COMM_EST,
                            SQ_DRAINED,
                            PATH_MIG,
                            PATH_MIG_ERR,
                            QP_LAST_WQE_REACHED -> queuePair;
                    default -> null;
                };
                boolean ofPort = switch (type) {
                    case PORT_ACTIVE,
                            PORT_ERR,
                            LID_CHANGE,
                            PKEY_CHANGE,
                            SM_CHANGE,
                            CLIENT_REREGISTER,
                            GID_CHANGE,
                            DEVICE_SPEED_CHANGE -> true;
                    default -> false;
                };
                Stub.call("stub_event", type.value(), source != null ? source.nativeAddress() : ofPort ? 1L : 0L);
                assertThat(context.tryGetAsyncEvent()).isEqualTo(new AsyncEvent(type, ofPort ? 1 : 0, source));
                assertThat(context.tryGetAsyncEvent()).isNull();
            }
            assertThat(context.awaitAsyncEvent(Duration.ofMillis(20))).isNull();
            Stub.call("stub_event", AsyncEventType.PORT_ERR.value(), 1L);
            assertThat(context.awaitAsyncEvent(Duration.ofSeconds(20)))
                    .isEqualTo(new AsyncEvent(AsyncEventType.PORT_ERR, 1, null));
            Stub.call("stub_event", AsyncEventType.PATH_MIG.value(), queuePair.nativeAddress());
            Stub.call("stub_event", AsyncEventType.DEVICE_FATAL.value(), 0L);
            List<AsyncEvent> drained = new ArrayList<>();
            assertThat(context.drainAsyncEvents(drained::add)).isEqualTo(2);
            assertThat(drained)
                    .containsExactly(
                            new AsyncEvent(AsyncEventType.PATH_MIG, 0, queuePair),
                            new AsyncEvent(AsyncEventType.DEVICE_FATAL, 0, null));
            assertThat(context.drainAsyncEvents(drained::add)).isZero();
            assertThat(Stub.call("stub_acked_events")).isEqualTo(Stub.call("stub_taken_events"));
        }
    }

    @Test
    @Timeout(240)
    void waitingForAnEventKeepsTheChannelOpenUntilItComes() throws Exception {
        try (Context context = Verbs.device("stub0").open();
                CompletionChannel channel = context.createCompletionChannel()) {
            FutureTask<CompletionQueue> taking = new FutureTask<>(channel::takeEvent);
            Thread thread = Thread.ofPlatform().daemon().start(taking);
            while (Stream.of(thread.getStackTrace())
                    .noneMatch(frame -> frame.getMethodName().equals("getCqEvent"))) {
                Thread.onSpinWait();
            }
            assertThatIllegalStateException().isThrownBy(channel::close).withMessageContaining("takeEvent()");
            try (CompletionQueue queue = context.createCompletionQueue(8, channel, 0)) {
                queue.requestNotify(false);
                assertThat(taking.isDone()).isFalse();
                Stub.call("stub_complete", queue.nativeAddress(), 1L, 0, 128, 1, 0, 0);
                assertThat(taking.get()).isSameAs(queue);
                assertThat(channel.awaitEvent(Duration.ofMillis(1))).isNull();
            }
        }
    }

    @Test
    void completionEventsAreAcknowledgedInBatchesAndBeforeClosing() {
        try (Context context = Verbs.device("stub0").open();
                CompletionChannel channel = context.createCompletionChannel();
                WorkCompletions into = new WorkCompletions(4)) {
            int events = CompletionQueue.EVENTS_PER_ACKNOWLEDGEMENT + 3;
            CompletionQueue other = context.createCompletionQueue(8, channel, 1);
            try (CompletionQueue queue = context.createCompletionQueue(8, channel, 5)) {
                assertThat(channel.tryGetEvent()).isNull();
                for (int i = 0; i < events; i++) {
                    queue.requestNotify(false);
                    Stub.call("stub_complete", queue.nativeAddress(), (long) i, 0, 128, 1, 0, 0);
                    assertThat(i % 2 == 0 ? channel.tryGetEvent() : channel.takeEvent())
                            .isSameAs(queue);
                    assertThat(channel.tryGetEvent()).isNull();
                    assertThat(queue.poll(into)).isOne();
                }
                assertThat(Stub.call("stub_acked_events")).isEqualTo(CompletionQueue.EVENTS_PER_ACKNOWLEDGEMENT);
            }
            assertThat(Stub.call("stub_acked_events")).isEqualTo(events);
            // The number of the closed queue is used again, and events find the new one.
            try (CompletionQueue next = context.createCompletionQueue(8, channel, 0)) {
                for (CompletionQueue queue : new CompletionQueue[] {other, next}) {
                    queue.requestNotify(true);
                    Stub.call("stub_complete", queue.nativeAddress(), 1L, 0, 128, 1, 0, 0);
                    assertThat(channel.tryGetEvent()).isSameAs(queue);
                }
            }
            other.close();
            Stub.failNext("ibv_get_cq_event", Errno.EIO);
            assertThatThrownBy(channel::tryGetEvent).hasMessageContaining("EIO");
        }
    }
}
