package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.device.OnDemandOperation;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.AdviceKind;
import org.verbena.verbs.memory.ForkStatus;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.CompletionQueueFlag;
import org.verbena.verbs.queue.EnhancedConnection;
import org.verbena.verbs.queue.QueuePairCreateFlag;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.queue.RateLimit;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;
import org.verbena.verbs.work.WorkCompletionOpcode;
import org.verbena.verbs.work.WorkRequestOpcode;

/** Functions that no lab device has: arguments, results, life cycles, and the failure where a provider lacks them. */
@Timeout(240)
class SurfaceTest {
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(4, 4, 2, 2, 16);

    private Arena arena;
    private Context context;
    private ProtectionDomain domain;
    private CompletionQueue completions;
    private MemoryRegion region;

    @BeforeEach
    void open() throws Exception {
        Stub.install();
        arena = Arena.ofShared();
        context = Verbs.device("stub0").open();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(8);
        region = domain.registerMemory(
                arena.allocate(64, 8), EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.MW_BIND, AccessFlag.REMOTE_WRITE));
    }

    @AfterEach
    void close() {
        region.close();
        completions.close();
        domain.close();
        context.close();
        arena.close();
        assertThat(Stub.live()).isZero();
    }

    private static void assertCalled(String function, long... arguments) {
        assertThat(Stub.text("stub_called")).isEqualTo(function);
        for (int i = 0; i < arguments.length; i++) {
            assertThat(Stub.number("stub_argument", i))
                    .as("argument " + i + " of " + function)
                    .isEqualTo(arguments[i]);
        }
    }

    @Test
    void queriesExtendedAttributes() {
        ExtendedDeviceAttributes device = context.queryDeviceExtended();
        assertThat(device.basic()).isEqualTo(context.queryDevice());
        assertThat(device.reliableOdp()).isEqualTo(0x1f);
        assertThat(device.xrcOdp()).isEqualTo(3);
        assertThat(device.hasOnDemandPaging()).isTrue();
        assertThat(device.hasImplicitOnDemandPaging()).isTrue();
        assertThat(device.onDemandOperations(QueuePairType.RC))
                .containsExactlyInAnyOrderElementsOf(EnumSet.complementOf(EnumSet.of(OnDemandOperation.SRQ_RECV)));
        assertThat(device.onDemandOperations(QueuePairType.XRC_RECV))
                .containsExactlyInAnyOrder(OnDemandOperation.SEND, OnDemandOperation.RECV);
        assertThat(device.onDemandOperations(QueuePairType.UD)).isEmpty();
        assertThat(device.clockKilohertz()).isEqualTo(156000);
        assertThat(device.maxTags()).isEqualTo(64);
        assertThat(device.maxModerationMicros()).isEqualTo(65535);
        assertThat(device.maxDeviceMemoryBytes()).isEqualTo(1 << 20);
        assertThat(device.pciCompareSwap()).isEqualTo(7);
        assertThat(device.physicalPorts()).isEqualTo(300);
        // A provider that does not know the question is asked the older one.
        Stub.failNext("stub_query_device_ex", Errno.EOPNOTSUPP);
        ExtendedDeviceAttributes older = context.queryDeviceExtended();
        assertThat(older.basic()).isEqualTo(device.basic());
        assertThat(older.clockKilohertz()).isZero();
        assertThat(older.hasOnDemandPaging()).isFalse();
        assertThat(older.hasImplicitOnDemandPaging()).isFalse();
        assertThat(older.onDemandOperations(QueuePairType.RC)).isEmpty();
        Stub.failNext("stub_query_device_ex", Errno.EIO);
        assertThatThrownBy(context::queryDeviceExtended).hasMessageContaining("EIO");
        assertThat(context.queryRawClock()).isEqualTo(3_000_000_004L);
    }

    @Test
    void forks() {
        Verbs.forkInit();
        Stub.failNext("ibv_fork_init", Errno.EINVAL);
        assertThatThrownBy(Verbs::forkInit).hasMessageContaining("ibv_fork_init");
        assertThat(Verbs.forkStatus()).isEqualTo(ForkStatus.UNNEEDED);
    }

    @Test
    void parentDomainsHoldWhatTheyJoin() {
        try (ThreadDomain threads = context.allocateThreadDomain();
                ProtectionDomain parent = context.allocateParentDomain(domain, threads);
                QueuePair queuePair = parent.createQueuePair(QueuePairOptions.reliable(completions, SIZES))) {
            assertThatIllegalStateException().isThrownBy(threads::close);
            assertThatIllegalStateException().isThrownBy(domain::close);
            // Memory of the inner domain serves queue pairs of the parent.
            queuePair.sendQueue().send(1, 0).sge(region, 0, 8);
            queuePair.sendQueue().flush();
        }
    }

    @Test
    void deviceMemoryIsCopiedAndRegistered() {
        try (DeviceMemory memory = context.allocateDeviceMemory(64, 6)) {
            assertThat(memory.handle()).isEqualTo(6);
            MemorySegment host = arena.allocate(8);
            host.set(ValueLayout.JAVA_LONG, 0, 42);
            memory.copyFrom(host, 56);
            MemorySegment back = arena.allocate(8);
            memory.copyTo(56, back);
            assertThat(back.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(42);
            assertThatThrownBy(() -> memory.copyFrom(host, 57)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> memory.copyTo(-1, back)).isInstanceOf(IndexOutOfBoundsException.class);
            try (MemoryRegion onDevice = domain.registerDeviceMemory(
                    memory, 8, 32, EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.ZERO_BASED))) {
                assertCalled("stub_reg_dm_mr", 8, 32, 1 | 1 << 5);
                assertThat(onDevice.address()).isZero();
                assertThatIllegalStateException().isThrownBy(onDevice::segment);
                assertThatIllegalStateException().isThrownBy(memory::close).withMessageContaining("MemoryRegion");
            }
        }
        try (MemoryRegion sink = domain.allocateNullRegion()) {
            assertThat(sink.lengthBytes()).isEqualTo(Long.MAX_VALUE);
        }
    }

    @Test
    void allMemoryIsRegisteredByItsAddresses() {
        try (MemoryRegion all = domain.registerAddressSpace(EnumSet.of(AccessFlag.LOCAL_WRITE));
                QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES))) {
            assertCalled("ibv_reg_mr", 0, -1, 1 | 1 << 6);
            assertThat(all.access()).containsExactlyInAnyOrder(AccessFlag.LOCAL_WRITE, AccessFlag.ON_DEMAND);
            assertThat(all.address()).isZero();
            assertThat(all)
                    .hasToString("MemoryRegion of the address space, lkey 0x" + Integer.toHexString(all.localKey()));
            assertThatIllegalStateException().isThrownBy(all::segment);
            MemorySegment later = arena.allocate(64);
            queuePair.sendQueue().send(1, 0).sge(all, later.address(), 64).flush();
            Stub.Posted posted = Stub.posted(Stub.postedCount() - 1);
            assertThat(posted.addresses()).containsExactly(later.address());
            assertThat(posted.keys()).containsExactly(all.localKey());
            all.advise(AdviceKind.PREFETCH_WRITE, true, later.address(), 64);
            assertCalled("stub_advise_mr", 1, 1, later.address(), 64, 1);
        }
        Set<AccessFlag> hint = EnumSet.of(AccessFlag.RELAXED_ORDERING);
        try (MemoryRegion all = domain.registerAddressSpace(hint)) {
            assertThat(all.handle()).isEqualTo(1 << 6 | 1 << 20); // the stub tells its access there
        }
        assertThatThrownBy(() -> domain.registerAddressSpace(EnumSet.of(AccessFlag.REMOTE_WRITE)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("lacks LOCAL_WRITE");
        Stub.failNext("ibv_reg_mr", Errno.EINVAL);
        assertThatThrownBy(() -> domain.registerAddressSpace(Set.of()))
                .hasMessageContaining("ibv_reg_mr(the address space, access=[ON_DEMAND])");
    }

    @Test
    void registersAgainAndSaysWhatIsLeftOnFailure() {
        MemorySegment other = arena.allocate(128);
        int key = region.localKey();
        region.reregister(other, EnumSet.of(AccessFlag.LOCAL_WRITE));
        assertCalled("ibv_rereg_mr", 5, other.address(), 128, 1);
        assertThat(region.segment()).isEqualTo(other);
        assertThat(region.lengthBytes()).isEqualTo(128);
        assertThat(region.localKey()).isEqualTo(key + 1);
        Stub.failNext("ibv_rereg_mr", 1);
        assertThatThrownBy(() -> region.reregister(other, Set.of()))
                .hasMessageContaining("the old registration is still good");
        Stub.failNext("ibv_rereg_mr", 4);
        assertThatThrownBy(() -> region.reregister(other, Set.of())).hasMessageContaining("the region is lost");
        region.advise(AdviceKind.PREFETCH_WRITE, true, 16, 32);
        assertCalled("stub_advise_mr", 1, 1, other.address() + 16, 32, 1);
        assertThatThrownBy(() -> region.advise(AdviceKind.PREFETCH, false, 100, 29))
                .isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void moderatesAndLimits() {
        completions.moderate(65535, 10);
        assertCalled("stub_modify_cq", 1, 65535, 10);
        assertThatThrownBy(() -> completions.moderate(65536, 0)).isInstanceOf(IllegalArgumentException.class);
        try (QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES))) {
            queuePair.modifyRateLimit(new RateLimit(1000, 2000, 3000));
            assertCalled("stub_modify_qp_rate_limit", 1000, 2000, 3000, 0);
            assertThat(queuePair.queryEnhancedConnection()).isEqualTo(new EnhancedConnection(0x15b3, 0x30000002));
            queuePair.setEnhancedConnection(new EnhancedConnection(1, 2));
            assertCalled("ibv_set_ece", 1, 2, 0);
        }
    }

    @Test
    void anXrcDomainIsSharedByItsFile(@TempDir Path directory) throws Exception {
        Path file = directory.resolve("domain");
        try (XrcDomain first = context.openXrcDomain(file);
                XrcDomain second = context.openXrcDomain(file)) {
            assertThat(second).isNotEqualTo(first);
            assertCalled("stub_open_xrcd", 3, Stub.number("stub_argument", 1), 0x40);
            assertThat(Stub.number("stub_argument", 1)).isPositive();
            assertThat(file).isEmptyFile();
            assertThat(first.context()).isSameAs(context);
        }
        try (XrcDomain made = context.openXrcDomain(7, true, true)) {
            assertCalled("stub_open_xrcd", 3, 7, 0x40 | 0x80);
            assertThat(made.isOpen()).isTrue();
        }
        try (XrcDomain found = context.openXrcDomain(7, false, false)) {
            assertCalled("stub_open_xrcd", 3, 7, 0);
            assertThat(found.isOpen()).isTrue();
        }
        assertThatThrownBy(() -> context.openXrcDomain(directory.resolve("missing/domain")))
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("missing/domain")
                .hasMessageContaining("ENOENT");
        long before = openDescriptors();
        Stub.failNext("stub_open_xrcd", 95);
        assertThatThrownBy(() -> context.openXrcDomain(file)).hasMessageContaining("EOPNOTSUPP");
        assertThat(openDescriptors()).isEqualTo(before);
    }

    private static long openDescriptors() throws Exception {
        try (var open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        }
    }

    @Test
    void xrcIsOpenedCreatedAndShared() {
        try (XrcDomain xrc = context.openXrcDomain()) {
            assertCalled("stub_open_xrcd", 3, 0xffffffffffffffffL, 0x40);
            try (SharedReceiveQueue receives = domain.createXrcSharedReceiveQueue(4, 1, xrc, completions)) {
                assertCalled("stub_create_srq_ex", 15, 1, xrc.nativeAddress(), completions.nativeAddress());
                assertThat(receives.number()).isEqualTo(0x4242);
                assertThat(receives.maxSges()).isOne();
                assertThatIllegalStateException().isThrownBy(xrc::close);
            }
            QueuePairOptions options =
                    QueuePairOptions.reliable(completions, SIZES).withType(QueuePairType.XRC_RECV);
            assertThatThrownBy(() -> domain.createQueuePair(options, QueuePairExtension.building(Set.of())))
                    .hasMessageContaining("needs an XRC domain");
            try (QueuePair receiver = domain.createQueuePair(options, QueuePairExtension.xrc(xrc))) {
                assertCalled("stub_create_qp_ex", 2, 0, 0, 0, xrc.nativeAddress());
                assertThatIllegalStateException().isThrownBy(receiver::builder);
                assertThatIllegalStateException()
                        .isThrownBy(receiver::sendQueue)
                        .withMessageContaining("XRC");
                assertThatIllegalStateException()
                        .isThrownBy(receiver::receiveQueue)
                        .withMessageContaining("XRC");
            }
            try (XrcTarget shared = context.openQueuePair(xrc, 0x77)) {
                assertCalled("stub_open_qp", 11, 0x77, QueuePairType.XRC_RECV.value(), xrc.nativeAddress());
                assertThat(shared.number()).isEqualTo(0x77);
            }
        }
    }

    @Test
    void theBuilderPassesEverythingOn() {
        QueuePairOptions options = QueuePairOptions.reliable(completions, SIZES);
        QueuePairExtension extension = new QueuePairExtension(
                EnumSet.allOf(SendOperation.class), EnumSet.of(QueuePairCreateFlag.SOURCE_QPN), null, 64, 9);
        try (QueuePair queuePair = domain.createQueuePair(options, extension)) {
            WorkRequestBuilder builder = queuePair.builder();
            assertThatIllegalStateException()
                    .isThrownBy(() -> builder.send(1, 0))
                    .withMessageContaining("start first");
            builder.start();
            assertCalled("wr_start");
            builder.send(1, SendFlags.SIGNALED);
            assertCalled("wr_send", SendFlags.SIGNALED, 0, 0, 0, 1);
            builder.sge(region, 8, 16);
            assertCalled("wr_set_sge", region.localKey(), region.address() + 8, 16);
            assertThatIllegalStateException().isThrownBy(() -> builder.sge(region, 0, 8));
            builder.send(3, 0).sge(region, 8, 0);
            assertCalled("wr_set_sge_list", 0);
            builder.send(3, SendFlags.INLINE);
            MemorySegment data = arena.allocate(16);
            data.set(ValueLayout.JAVA_BYTE, 0, (byte) 5);
            builder.inline(data);
            assertCalled("wr_set_inline_data", 5, 16);
            builder.write(4, SendFlags.FENCE, 0x1000, 0x55);
            assertCalled("wr_rdma_write", 0x55, 0x1000, SendFlags.FENCE, 0, 4);
            builder.sge(region, 0, 8);
            builder.atomicWrite(9, 0, 0x6000, 0x5a, 0x1122334455667788L);
            assertCalled("wr_atomic_write", 0x5a, 0x6000, 0x1122334455667788L);
            builder.flush(10, 0, 0x7000, 0x5b, 4096, true, false);
            assertCalled("wr_flush", 0x5b, 0x7000, 4096, 2 << 8, 10);
            builder.complete();
            assertCalled("wr_complete");
            assertThatIllegalStateException().isThrownBy(builder::complete);

            builder.start();
            builder.send(1, 0);
            assertThatThrownBy(() -> builder.inline(data)).hasMessageContaining("begun without SendFlags.INLINE");
            builder.abort();
            builder.start();
            builder.send(1, SendFlags.INLINE);
            assertThatThrownBy(() -> builder.sge(region, 0, 8)).hasMessageContaining("begun with SendFlags.INLINE");
            builder.abort();
            builder.start();
            builder.send(1, SendFlags.INLINE);
            assertThatThrownBy(() -> builder.inline(arena.allocate(17)))
                    .hasMessageContaining("17 bytes are more than the 16");
            assertThatIllegalStateException()
                    .isThrownBy(() -> builder.send(2, 0))
                    .withMessageContaining("abort it");
            builder.abort();
            assertCalled("wr_abort");
            builder.start();
            assertThatThrownBy(() -> builder.atomicWrite(1, 0, 4, 0, 1)).hasMessageContaining("multiple of 8");
            Stub.failNext("wr_complete", Errno.ENOMEM);
            assertThatThrownBy(builder::complete)
                    .hasMessageContaining("ibv_wr_complete")
                    .hasMessageContaining("ENOMEM");
        }
    }

    @Test
    void addressHandlesAndKeysArriveAsGiven() {
        try (MemoryWindow window = domain.allocateMemoryWindow(WindowType.TYPE_2);
                AddressHandle handle =
                        domain.createAddressHandle(AddressVector.global(1, new GlobalRoute(Gid.ZERO, 3, 255, 0, 0)))) {
            assertCalled("ibv_create_ah", 3, 255, 0, 1, 1);
            assertThat(handle.domain()).isSameAs(domain);
            assertThat(MemoryWindow.nextKey(window.remoteKey())).isEqualTo(0x1200); // 0x12ff, the low byte wraps
        }
    }

    @Test
    void aQueuePairThatCameWithoutABuilderIsGivenBack() {
        Stub.failNext("ibv_qp_to_qp_ex", Errno.EOPNOTSUPP);
        int live = Stub.live();
        assertThatThrownBy(() -> domain.createQueuePair(
                        QueuePairOptions.reliable(completions, SIZES),
                        QueuePairExtension.building(EnumSet.of(SendOperation.SEND))))
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("ibv_qp_to_qp_ex")
                .hasMessageContaining("EOPNOTSUPP");
        assertThat(Stub.live()).isEqualTo(live);
    }

    @Test
    void objectsOfAnotherContextAreRefused() {
        try (Context other = Verbs.device("stub0").open();
                ProtectionDomain otherDomain = other.allocateProtectionDomain();
                CompletionQueue otherCompletions = other.createCompletionQueue(8);
                SharedReceiveQueue otherReceives = otherDomain.createSharedReceiveQueue(1, 1);
                XrcDomain otherXrc = other.openXrcDomain();
                XrcDomain xrc = context.openXrcDomain();
                MemoryWindow window = domain.allocateMemoryWindow(WindowType.TYPE_1);
                QueuePair otherPair = otherDomain.createQueuePair(QueuePairOptions.reliable(otherCompletions, SIZES))) {
            QueuePairOptions own = QueuePairOptions.reliable(completions, SIZES);
            QueuePairOptions foreign = QueuePairOptions.reliable(otherCompletions, SIZES);
            QueuePairOptions half =
                    new QueuePairOptions(QueuePairType.RC, completions, otherCompletions, null, SIZES, false);
            QueuePairExtension building = QueuePairExtension.building(EnumSet.of(SendOperation.SEND));
            List<ThrowingCallable> mixtures = List.of(
                    () -> domain.createQueuePair(foreign),
                    () -> domain.createQueuePair(half),
                    () -> domain.createQueuePair(own.withSharedReceives(otherReceives)),
                    () -> domain.createQueuePair(foreign, building),
                    () -> domain.createQueuePair(
                            own.withType(QueuePairType.XRC_RECV), QueuePairExtension.xrc(otherXrc)),
                    () -> domain.createXrcSharedReceiveQueue(1, 1, xrc, otherCompletions),
                    () -> domain.createXrcSharedReceiveQueue(1, 1, otherXrc, completions),
                    () -> window.bind(otherPair, 1, 0, region, 0, 8, Set.of()));
            for (ThrowingCallable mixture : mixtures) {
                assertThatThrownBy(mixture)
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessageContaining("another context");
            }
        }
    }

    @Test
    void aCompletionQueueIsCreatedInSpecialWays() {
        try (CompletionQueue special = context.createExtendedCompletionQueue(
                8,
                null,
                0,
                Set.of(CompletionField.IMM),
                EnumSet.of(CompletionQueueFlag.SINGLE_THREADED, CompletionQueueFlag.IGNORE_OVERRUN))) {
            assertCalled("stub_create_cq_ex", 8, 0, 2, 1, 3);
            assertThat(special.reader().tryNext()).isFalse();
        }
    }

    @Test
    void theReaderReturnsEveryFieldAndHoldsNoBatchOpen() {
        try (CompletionQueue extended =
                context.createExtendedCompletionQueue(8, null, 1, EnumSet.allOf(CompletionField.class))) {
            assertCalled("stub_create_cq_ex", 8, 1, 0xfff, 0);
            CompletionReader reader = extended.reader();
            assertThat(reader.fields()).isEqualTo(EnumSet.allOf(CompletionField.class));
            assertThat(reader.tryNext()).isFalse();
            Stub.call("stub_complete_ex", extended.nativeAddress(), 3L, 0, 128, 100, Integer.reverseBytes(0x01020304));
            assertThat(reader.tryNext()).isTrue();
            assertThat(Stub.call("stub_polling", extended.nativeAddress())).isZero();
            assertThat(reader.isSuccess()).isTrue();
            assertThat(reader.workRequestId()).isEqualTo(3);
            assertThat(reader.opcode()).isEqualTo(WorkCompletionOpcode.RECV);
            assertThat(reader.lengthBytes()).isEqualTo(100);
            assertThat(reader.immediateData()).isEqualTo(0x01020304);
            assertThat(reader.invalidatedKey()).isEqualTo(Integer.reverseBytes(0x01020304));
            assertThat(reader.queuePairNumber()).isEqualTo(5);
            assertThat(reader.sourceQueuePairNumber()).isEqualTo(6);
            assertThat(reader.flags()).isEqualTo(2);
            assertThat(reader.sourceLid()).isEqualTo(0xfff1);
            assertThat(reader.serviceLevel()).isEqualTo(15);
            assertThat(reader.destinationPathBits()).isEqualTo(0x81);
            assertThat(reader.timestamp()).isEqualTo(0x123456789abcdef0L);
            assertThat(reader.vlan()).isEqualTo(0xf123);
            assertThat(reader.flowTag()).isEqualTo(0xabcdef);
            assertThat(reader.tag()).isEqualTo(77);
            assertThat(reader.tagUserData()).isEqualTo(78);
            assertThat(reader.wallclockNanos()).isEqualTo(1234567890123456789L);
            assertThat(reader.tryNext()).isFalse();
            assertThatIllegalStateException().isThrownBy(reader::status);

            Stub.call("stub_complete_ex", extended.nativeAddress(), 4L, 5, 128, 100, 0);
            assertThat(reader.tryNext()).isTrue();
            assertThat(reader.status()).isEqualTo(CompletionStatus.WR_FLUSH_ERR);
            assertThat(reader.vendorError()).isEqualTo(9);
            assertThat(reader.queuePairNumber()).isEqualTo(5);
            assertThatIllegalStateException().isThrownBy(reader::lengthBytes).withMessageContaining("WR_FLUSH_ERR");
            Stub.failNext("start_poll", Errno.EIO);
            assertThatThrownBy(reader::tryNext).hasMessageContaining("ibv_start_poll");
        }
        assertThatIllegalStateException().isThrownBy(completions::reader);
    }

    @Test
    void segmentedAndDatagramSendsAreFormatted() {
        QueuePairOptions options = QueuePairOptions.reliable(completions, SIZES);
        try (QueuePair queuePair = domain.createQueuePair(options);
                QueuePair datagrams = domain.createQueuePair(options.withType(QueuePairType.UD));
                MemoryWindow window = domain.allocateMemoryWindow(WindowType.TYPE_2)) {
            queuePair.sendQueue().localInvalidate(1, 0, 0x77);
            queuePair.sendQueue().bindWindow(2, 0, window, 0x88, region, 0, 8, Set.of(AccessFlag.REMOTE_WRITE));
            assertThatThrownBy(() -> queuePair.sendQueue().sge(region, 0, 8)).hasMessageContaining("more than 0 SGEs");
            queuePair.sendQueue().bindWindow(2, 0, window, 0x88, region, 0, 8, Set.of(AccessFlag.REMOTE_WRITE));
            queuePair.sendQueue().flush();
            datagrams.sendQueue().sendSegmented(3, 0, arena.allocate(14), 1000).sge(region, 0, 8);
            datagrams.sendQueue().flush();
            assertThat(Stub.posted(0).opcode()).isEqualTo(WorkRequestOpcode.LOCAL_INV.value());
            assertThat(Stub.posted(0).immediate()).isEqualTo(0x77);
            assertThat(Stub.posted(1).opcode()).isEqualTo(WorkRequestOpcode.BIND_MW.value());
            assertThat(Stub.posted(2).opcode()).isEqualTo(WorkRequestOpcode.TSO.value());
        }
    }

    /** librxe refuses a binding that has any, whoever left it in the slot. */
    @Test
    void aBindingHasNoImmediateData() {
        try (QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES));
                MemoryWindow window = domain.allocateMemoryWindow(WindowType.TYPE_2)) {
            queuePair
                    .sendQueue()
                    .sendWithImmediate(1, 0, 0x01020304)
                    .sge(region, 0, 8)
                    .flush();
            queuePair
                    .sendQueue()
                    .bindWindow(2, 0, window, 0x88, region, 0, 8, Set.of(AccessFlag.REMOTE_WRITE))
                    .flush();
            assertThat(Stub.posted(1).opcode()).isEqualTo(WorkRequestOpcode.BIND_MW.value());
            assertThat(Stub.posted(1).immediate()).isZero();
        }
    }

    @Test
    void olderProvidersAreSupported() {
        Stub.call("stub_without_later", 1);
        try (Context older = Verbs.device("stub0").open()) {
            assertThatThrownBy(older::openXrcDomain)
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("ibv_open_xrcd")
                    .hasMessageContaining("EOPNOTSUPP")
                    .hasMessageContaining("does not support this function");
            assertThatThrownBy(older::queryRawClock).hasMessageContaining("EOPNOTSUPP");
            assertThatThrownBy(() -> older.createExtendedCompletionQueue(1, null, 0, Set.of()))
                    .hasMessageContaining("EOPNOTSUPP");
            assertThat(older.queryDeviceExtended().basic()).isEqualTo(older.queryDevice());
        }
    }

    @Test
    void masksAndPortsAreWorkedOutAsInC() {
        assertThat(QueuePairType.RC.isIn(1 << 2)).isTrue();
        assertThat(QueuePairType.UD.isIn(1 << 2)).isFalse();
        assertThat(QueuePairType.DRIVER.isIn(-1)).isFalse();
        assertThat(new GlobalRoute(Gid.ZERO, 0, 1, 0, 0xabcde).udpSourcePort()).isEqualTo(0xfcf4);
        assertThat(GlobalRoute.to(Gid.ZERO, 0).udpSourcePort()).isEqualTo(0xc000);
    }
}
