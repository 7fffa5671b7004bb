package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvSendWr;
import org.verbena.verbs.ffm.IbvWc;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.WorkCompletionOpcode;
import org.verbena.verbs.work.WorkRequestOpcode;

/** Staged work requests reach the device as they were given, in one call; invalid ones do not reach it. */
@Timeout(240)
class DataPathTest {
    private static final int DEPTH = 8;

    private Arena arena;
    private Context context;
    private ProtectionDomain domain;
    private CompletionQueue completions;
    private MemoryRegion region;
    private MemoryRegion readOnlyRegion;
    private QueuePair queuePair;
    private SendQueue sends;
    private WorkCompletions done;

    @BeforeEach
    void open() throws Exception {
        Stub.install();
        arena = Arena.ofShared();
        context = Verbs.device("stub0").open();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(64);
        region = domain.registerMemory(arena.allocate(4096), EnumSet.of(AccessFlag.LOCAL_WRITE));
        readOnlyRegion = domain.registerMemory(arena.allocate(64), EnumSet.noneOf(AccessFlag.class));
        queuePair = domain.createQueuePair(
                QueuePairOptions.reliable(completions, new QueuePairCapabilities(DEPTH, DEPTH, 2, 2, 32)));
        sends = queuePair.sendQueue();
        done = new WorkCompletions(4);
    }

    @AfterEach
    void close() {
        done.close();
        queuePair.close();
        region.close();
        readOnlyRegion.close();
        completions.close();
        domain.close();
        context.close();
        arena.close();
        assertThat(Stub.live()).isZero();
    }

    /** For the size of a queue without a completion queue librdmacm makes one, which nobody gives back. */
    @Test
    void queuesThatXrcDoesNotHaveHaveNoSize() {
        QueuePairOptions options =
                QueuePairOptions.reliable(completions, new QueuePairCapabilities(DEPTH, DEPTH, 2, 2, 32));
        QueuePairExtension none = new QueuePairExtension(Set.of(), Set.of(), null, 0, 0);
        try (XrcDomain xrc = context.openXrcDomain()) {
            MemorySegment sends = QueuePair.toNative(arena, domain, options.withType(QueuePairType.XRC_SEND), none);
            assertThat(options.granted(sends).capabilities()).isEqualTo(new QueuePairCapabilities(DEPTH, 0, 2, 0, 32));
            MemorySegment receives = QueuePair.toNative(
                    arena, domain, options.withType(QueuePairType.XRC_RECV), QueuePairExtension.xrc(xrc));
            assertThat(options.granted(receives).capabilities()).isEqualTo(new QueuePairCapabilities(0, 0, 0, 0, 0));
        }
    }

    @Test
    void whatTheTransportDoesNotCarryIsRefused() {
        QueuePairOptions options =
                QueuePairOptions.reliable(completions, new QueuePairCapabilities(DEPTH, DEPTH, 2, 2, 32));
        try (QueuePair connected = domain.createQueuePair(options.withType(QueuePairType.UC));
                QueuePair datagrams = domain.createQueuePair(options.withType(QueuePairType.UD))) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> connected.sendQueue().read(1, 0, 0, 0))
                    .withMessageStartingWith("RDMA_READ needs a queue pair of type RC, XRC_SEND, which UC QueuePair ");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> datagrams.sendQueue().write(1, 0, 0, 0))
                    .withMessageStartingWith(
                            "RDMA_WRITE needs a queue pair of type RC, UC, XRC_SEND, which UD QueuePair ");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> connected.sendQueue().fetchAndAdd(1, 0, 0, 0, 1, region, 0));
            connected.sendQueue().write(1, 0, 0, 0);
            datagrams.sendQueue().send(1, 0);
            assertThat(connected.sendQueue().stagedWrs()).isOne();
            assertThat(datagrams.sendQueue().stagedWrs()).isOne();
            connected.sendQueue().discard();
            datagrams.sendQueue().discard();
        }
    }

    @Test
    void postsALinkedListWithOneCall() {
        sends.send(1, SendFlags.SIGNALED).sge(region, 0, 10).sge(region, 100, 20);
        sends.sendWithImmediate(2, SendFlags.SOLICITED, 0x01020304).sge(region, 5, 1);
        sends.sendWithInvalidate(3, SendFlags.FENCE, 0xbeef);
        sends.write(4, 0, 0x1000, 0x77).sge(readOnlyRegion, 0, 64);
        sends.writeWithImmediate(5, 0, 0x2000, 0x78, 9).sge(region, 0, 1);
        sends.read(6, 0, 0x3000, 0x79).sge(region, 0, 4096);
        sends.compareAndSwap(7, 0, 0x4000, 0x7a, 111, 222, region, 8);
        sends.fetchAndAdd(8, SendFlags.SIGNALED, 0x5000, 0x7b, -1, region, 16);
        assertThat(sends.stagedWrs()).isEqualTo(8);
        assertThat(Stub.postedCount()).isZero();

        sends.flush();

        assertThat(sends.stagedWrs()).isZero();
        assertThat(Stub.postCalls()).isOne();
        assertThat(Stub.postedCount()).isEqualTo(8);
        Stub.Posted send = Stub.posted(0);
        assertThat(send.workRequestId()).isOne();
        assertThat(send.opcode()).isEqualTo(WorkRequestOpcode.SEND.value());
        assertThat(send.flags()).isEqualTo(SendFlags.SIGNALED);
        assertThat(send.addresses()).containsExactly(region.address(), region.address() + 100);
        assertThat(send.lengths()).containsExactly(10, 20);
        assertThat(send.keys()).containsExactly(region.localKey(), region.localKey());
        Stub.Posted immediate = Stub.posted(1);
        assertThat(immediate.opcode()).isEqualTo(WorkRequestOpcode.SEND_WITH_IMM.value());
        assertThat(immediate.immediate()).isEqualTo(Integer.reverseBytes(0x01020304)); // network order
        assertThat(immediate.sges()).isOne();
        Stub.Posted invalidate = Stub.posted(2);
        assertThat(invalidate.opcode()).isEqualTo(WorkRequestOpcode.SEND_WITH_INV.value());
        assertThat(invalidate.immediate()).isEqualTo(0xbeef); // the same place, in host order
        assertThat(invalidate.sges()).isZero();
        Stub.Posted write = Stub.posted(3);
        assertThat(write.opcode()).isEqualTo(WorkRequestOpcode.RDMA_WRITE.value());
        assertThat(write.remoteAddress()).isEqualTo(0x1000);
        assertThat(write.remoteKey()).isEqualTo(0x77);
        assertThat(Stub.posted(4).opcode()).isEqualTo(WorkRequestOpcode.RDMA_WRITE_WITH_IMM.value());
        assertThat(Stub.posted(5).opcode()).isEqualTo(WorkRequestOpcode.RDMA_READ.value());
        Stub.Posted swap = Stub.posted(6);
        assertThat(swap.opcode()).isEqualTo(WorkRequestOpcode.ATOMIC_CMP_AND_SWP.value());
        assertThat(swap.compareAdd()).isEqualTo(111);
        assertThat(swap.swap()).isEqualTo(222);
        assertThat(swap.remoteKey()).isEqualTo(0x7a);
        assertThat(swap.lengths()).containsExactly(8);
        Stub.Posted add = Stub.posted(7);
        assertThat(add.compareAdd()).isEqualTo(-1);
        assertThat(add.remoteAddress()).isEqualTo(0x5000);
    }

    @Test
    void flushingNothingCallsNothing() {
        sends.flush();
        assertThat(sends.tryFlush()).isZero();
        assertThat(Stub.postCalls()).isZero();
    }

    @Test
    void slotsAreReusedFlushAfterFlush() {
        for (int round = 0; round < 5; round++) {
            for (int i = 0; i < DEPTH; i++) {
                sends.send(round * 100 + i, SendFlags.SIGNALED).sge(region, i, 1);
            }
            assertThat(sends.isFull()).isTrue();
            assertThatIllegalStateException().isThrownBy(() -> sends.send(1, 0)).withMessageContaining("flush first");
            sends.flush();
            assertThat(pollAll()).isEqualTo(DEPTH);
        }
        assertThat(Stub.postedCount()).isEqualTo(5 * DEPTH);
        assertThat(Stub.posted(39).workRequestId()).isEqualTo(407);
    }

    private int pollAll() {
        int total = 0;
        for (int count = completions.poll(done); count > 0; count = completions.poll(done)) {
            total += count;
        }
        return total;
    }

    @Test
    void completionsComeInBatchesOfTheArray() {
        for (int i = 0; i < 6; i++) {
            sends.send(i, SendFlags.SIGNALED).sge(region, 0, i);
        }
        sends.flush();
        assertThat(completions.poll(done)).isEqualTo(4);
        assertThat(done.count()).isEqualTo(4);
        for (int i = 0; i < 4; i++) {
            assertThat(done.workRequestId(i)).isEqualTo(i);
            assertThat(done.isSuccess(i)).isTrue();
            assertThat(done.status(i)).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(done.opcode(i)).isEqualTo(WorkCompletionOpcode.SEND);
            assertThat(done.isReceive(i)).isFalse();
            assertThat(done.lengthBytes(i)).isEqualTo(i);
            assertThat(done.queuePairNumber(i)).isEqualTo(queuePair.number());
        }
        assertThat(completions.poll(done)).isEqualTo(2);
        assertThatThrownBy(() -> done.workRequestId(2)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(completions.poll(done)).isZero();
    }

    @Test
    void receivedImmediateDataIsInHostOrder() {
        Stub.call(
                "stub_complete",
                completions.nativeAddress(),
                5L,
                0,
                WorkCompletionOpcode.RECV.value(),
                17,
                2,
                Integer.reverseBytes(0x01020304));
        Stub.call("stub_complete", completions.nativeAddress(), 6L, 0, 129, 18, 8, 0xbeef);
        assertThat(completions.poll(done)).isEqualTo(2);
        assertThat(done.isReceive(0)).isTrue();
        assertThat(done.hasImmediateData(0)).isTrue();
        assertThat(done.hasInvalidatedKey(0)).isFalse();
        assertThat(done.immediateData(0)).isEqualTo(0x01020304);
        assertThat(done.lengthBytes(0)).isEqualTo(17);
        assertThat(done.isReceive(1)).isTrue();
        assertThat(done.hasInvalidatedKey(1)).isTrue();
        assertThat(done.invalidatedKey(1)).isEqualTo(0xbeef);
    }

    @Test
    void aReceivedDatagramSaysHowItCame() {
        Stub.call("stub_complete", completions.nativeAddress(), 5L, 0, WorkCompletionOpcode.RECV.value(), 57, 1 | 4, 0);
        assertThat(completions.poll(done)).isOne();
        assertThat(done.hasGlobalRouteHeader(0)).isTrue();
        assertThat(done.isChecksumOk(0)).isTrue();
        assertThat(done.sourceQueuePairNumber(0)).isEqualTo(0x654321);
        assertThat(done.sourceLid(0)).isEqualTo(0xfff1);
        assertThat(done.pkeyIndex(0)).isEqualTo(0xfffe);
        assertThat(done.serviceLevel(0)).isEqualTo(15);
        assertThat(done.destinationPathBits(0)).isEqualTo(0x81);
    }

    /** Some adapters take the length 0 for 2^31 bytes. */
    @Test
    void aPieceOfNoBytesIsNotPassedOn() {
        sends.send(1, 0).sge(region, 0, 0);
        sends.send(2, 0).sge(region, 0, 0).sge(region, 8, 16).sge(region, 0, 0);
        sends.send(3, 0).uncheckedSge(region.address(), 0, region.localKey());
        sends.flush();
        queuePair.receiveQueue().receive(4).sge(region, 0, 0).flush();
        assertThat(Stub.posted(0).sges()).isZero();
        assertThat(Stub.posted(1).lengths()).containsExactly(16);
        assertThat(Stub.posted(1).addresses()).containsExactly(region.address() + 8);
        assertThat(Stub.posted(2).sges()).isZero();
        assertThat(Stub.posted(3).sges()).isZero();
    }

    @Test
    void anErrorCompletionHasOnlyItsStatus() {
        Stub.call("stub_complete_with", CompletionStatus.REM_ACCESS_ERR.value(), 0x42);
        sends.write(77, 0, 0x1000, 1).sge(region, 0, 8);
        sends.flush();
        assertThat(completions.poll(done)).isOne();
        assertThat(done.isSuccess(0)).isFalse();
        assertThat(done.status(0)).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
        assertThat(done.workRequestId(0)).isEqualTo(77);
        assertThat(done.vendorError(0)).isEqualTo(0x42);
        assertThat(done.queuePairNumber(0)).isEqualTo(queuePair.number());
        assertThatIllegalStateException().isThrownBy(() -> done.lengthBytes(0)).withMessageContaining("REM_ACCESS_ERR");
        assertThatIllegalStateException().isThrownBy(() -> done.opcode(0));
        assertThatIllegalStateException().isThrownBy(() -> done.isReceive(0));
        assertThatIllegalStateException().isThrownBy(() -> done.immediateData(0));
        assertThat(done.describe(0)).contains("REM_ACCESS_ERR", "check key", "vendor error 0x42", "0x4d");
    }

    @Test
    void aStatusUnknownToCIsUnknown() {
        Stub.call("stub_complete", completions.nativeAddress(), 5L, 4711, 0, 0, 0, 0);
        completions.poll(done);
        assertThat(done.status(0)).isEqualTo(CompletionStatus.UNKNOWN);
        assertThat(done.isSuccess(0)).isFalse();
    }

    @Test
    void aBrokenQueueThrows() {
        Stub.failNext("poll_cq", Errno.EINVAL);
        assertThatThrownBy(() -> completions.poll(done))
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("ibv_poll_cq");
        assertThat(done.count()).isZero();
        Stub.failNext("req_notify_cq", Errno.EINVAL);
        assertThatThrownBy(() -> completions.requestNotify(false)).hasMessageContaining("ibv_req_notify_cq");
    }

    @Test
    void aFullQueueKeepsTheRestStagedAndSaysWhatToDo() {
        for (int i = 0; i < DEPTH - 3; i++) {
            sends.send(i, SendFlags.SIGNALED);
        }
        sends.flush();
        for (int i = 0; i < 5; i++) {
            sends.send(100 + i, SendFlags.SIGNALED);
        }
        assertThatExceptionOfType(VerbsException.class)
                .isThrownBy(sends::flush)
                .satisfies(full -> assertThat(full.errno()).isEqualTo(Errno.ENOMEM))
                .withMessageContaining("the send queue is full")
                .withMessageContaining("inline sends included")
                .withMessageContaining("2 not taken");
        assertThat(sends.stagedWrs()).isEqualTo(2);
        assertThat(sends.tryFlush()).isEqualTo(Errno.ENOMEM);
        assertThat(sends.stagedWrs()).isEqualTo(2);
        assertThat(pollAll()).isEqualTo(DEPTH);
        assertThat(sends.tryFlush()).isZero();
        assertThat(Stub.postedCount()).isEqualTo(DEPTH + 2);
        for (int i = 0; i < 5; i++) {
            assertThat(Stub.posted(DEPTH - 3 + i).workRequestId()).isEqualTo(100 + i);
        }
    }

    @Test
    void unsignalledSendsHoldTheirSlotsUntilASignalledOneCompletes() {
        for (int i = 0; i < DEPTH - 1; i++) {
            sends.send(i, 0);
        }
        sends.send(99, SendFlags.SIGNALED);
        sends.flush();
        assertThat(pollAll()).isOne();
        sends.send(1, SendFlags.SIGNALED);
        assertThat(sends.tryFlush()).isZero();
    }

    @Test
    void understandsEveryKindOfRefusal() {
        Stub.call("stub_refuse", Stub.REFUSE_NEGATIVE);
        Stub.failNext("post_send", Errno.ENOTCONN);
        sends.send(1, 0);
        assertThat(sends.tryFlush()).isEqualTo(Errno.ENOTCONN);
        assertThat(sends.stagedWrs()).isOne();
        sends.discard();

        // siw: the work is in the queue, the kernel could not be told, and none is named. Staying staged would send it
        // twice.
        Stub.call("stub_refuse", Stub.REFUSE_MINUS_ONE);
        Stub.failNext("post_send", Errno.ENOTCONN);
        sends.send(2, 0);
        assertThat(sends.tryFlush()).isEqualTo(Errno.EIO);
        assertThat(sends.stagedWrs()).isZero();

        // siw: an overflow behind work that fitted is answered with 0, and would be lost silently.
        Stub.call("stub_refuse", Stub.REFUSE_ZERO);
        for (int i = 0; i < DEPTH; i++) {
            sends.send(i, SendFlags.SIGNALED);
        }
        sends.flush();
        sends.send(50, SendFlags.SIGNALED);
        assertThatThrownBy(sends::flush).hasMessageContaining("ENOMEM");
        assertThat(sends.stagedWrs()).isOne();
        assertThat(pollAll()).isEqualTo(DEPTH);
        sends.flush();
        assertThat(Stub.posted(Stub.postedCount() - 1).workRequestId()).isEqualTo(50);
    }

    @Test
    void whatTheCallerLaidOutGoesToTheDeviceAndComesBack() {
        MemorySegment own = arena.allocate(2 * IbvSendWr.SIZE, 8);
        for (int i = 0; i < 2; i++) {
            own.set(ValueLayout.JAVA_LONG, i * IbvSendWr.SIZE + IbvSendWr.WR_ID, 70 + i);
            own.set(ValueLayout.JAVA_INT, i * IbvSendWr.SIZE + IbvSendWr.OPCODE, WorkRequestOpcode.SEND.value());
            own.set(ValueLayout.JAVA_INT, i * IbvSendWr.SIZE + IbvSendWr.SEND_FLAGS, SendFlags.SIGNALED);
        }
        own.set(ValueLayout.JAVA_LONG, IbvSendWr.NEXT, own.address() + IbvSendWr.SIZE);
        sends.send(72, SendFlags.SIGNALED);
        assertThat(sends.tryPostNative(own.address())).isZero();
        assertThat(sends.stagedWrs()).as("what is staged stays so").isOne();
        assertThat(Stub.postedCount()).isEqualTo(2);
        sends.flush();

        MemorySegment taken = arena.allocate(2 * IbvWc.SIZE, 8);
        assertThat(completions.pollNative(taken.address(), 0)).isZero();
        assertThat(completions.pollNative(taken.address(), 2)).isEqualTo(2);
        assertThat(taken.get(ValueLayout.JAVA_LONG, IbvWc.WR_ID)).isEqualTo(70);
        assertThat(taken.get(ValueLayout.JAVA_LONG, IbvWc.SIZE + IbvWc.WR_ID)).isEqualTo(71);
        assertThat(completions.pollNative(taken.address(), 2)).isOne();
        assertThat(taken.get(ValueLayout.JAVA_LONG, IbvWc.WR_ID)).isEqualTo(72);
        assertThatIllegalArgumentException().isThrownBy(() -> completions.pollNative(taken.address(), -1));

        for (int refusal : new int[] {Stub.REFUSE_NEGATIVE, Stub.REFUSE_MINUS_ONE}) {
            Stub.call("stub_refuse", refusal);
            Stub.failNext("post_send", Errno.ENOTCONN);
            assertThat(sends.tryPostNative(own.address()))
                    .isEqualTo(refusal == Stub.REFUSE_NEGATIVE ? Errno.ENOTCONN : Errno.EIO);
        }
        Stub.call("stub_refuse", Stub.REFUSE_ZERO);
        int last = 0;
        for (int i = 0; i < DEPTH && last == 0; i++) {
            last = sends.tryPostNative(own.address());
        }
        assertThat(last).isEqualTo(Errno.ENOMEM);
        queuePair.close();
        assertThatIllegalStateException().isThrownBy(() -> sends.tryPostNative(own.address()));
    }

    @Test
    void refusesPiecesOutsideTheirRegion() {
        sends.send(1, 0).sge(region, 0, 4096);
        for (long[] sge : new long[][] {{0, 4097}, {4096, 1}, {1, 4096}, {-1, 1}, {0, -1}, {Long.MAX_VALUE, 1}}) {
            assertThatExceptionOfType(IndexOutOfBoundsException.class)
                    .isThrownBy(() -> sends.send(2, 0).sge(region, sge[0], (int) sge[1]))
                    .withMessageContaining("not staged");
        }
        assertThat(sends.stagedWrs()).isOne();
        sends.send(3, 0).sge(region, 4096, 0);
        sends.flush();
        assertThat(Stub.postedCount()).isEqualTo(2);
    }

    @Test
    void refusesWrongRights() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.read(1, 0, 0, 0).sge(readOnlyRegion, 0, 8))
                .withMessageContaining("needs [LOCAL_WRITE]");
        assertThatIllegalArgumentException().isThrownBy(() -> sends.fetchAndAdd(1, 0, 0, 0, 1, readOnlyRegion, 0));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> queuePair.receiveQueue().receive(1).sge(readOnlyRegion, 0, 8))
                .withMessageContaining("needs [LOCAL_WRITE]");
        assertThat(sends.stagedWrs()).isZero();
        assertThat(queuePair.receiveQueue().stagedWrs()).isZero();
    }

    @Test
    void refusesClosedRegionsAndThoseOfOtherDomains() {
        try (ProtectionDomain other = context.allocateProtectionDomain();
                MemoryRegion foreign = other.registerMemory(arena.allocate(8), EnumSet.of(AccessFlag.LOCAL_WRITE))) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> sends.send(1, 0).sge(foreign, 0, 8))
                    .withMessageContaining("another protection domain");
        }
        MemoryRegion closed = domain.registerMemory(arena.allocate(8), EnumSet.of(AccessFlag.LOCAL_WRITE));
        closed.close();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.send(1, 0).sge(closed, 0, 8))
                .withMessageContaining("is closed");
        assertThat(sends.stagedWrs()).isZero();
    }

    @Test
    void refusesTooManyPieces() {
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        sends.send(1, 0).sge(region, 0, 1).sge(region, 1, 1).sge(region, 2, 1))
                .withMessageContaining("more than 2");
        assertThat(sends.stagedWrs()).isZero();
        // What was refused takes no more pieces.
        assertThatIllegalStateException().isThrownBy(() -> sends.sge(region, 0, 1));
        ReceiveQueue receives = queuePair.receiveQueue();
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        receives.receive(1).sge(region, 0, 1).sge(region, 1, 1).sge(region, 2, 1));
        // An atomic has its one piece.
        sends.fetchAndAdd(1, 0, 0, 0, 1, region, 0);
        assertThatIllegalArgumentException().isThrownBy(() -> sends.sge(region, 0, 8));
    }

    @Test
    void refusesUnalignedAtomicsAndUnknownFlags() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.compareAndSwap(1, 0, 0x1004, 0, 0, 0, region, 0))
                .withMessageContaining("multiple of 8");
        assertThatIllegalArgumentException().isThrownBy(() -> sends.send(1, 1 << 9));
        assertThatIllegalArgumentException().isThrownBy(() -> sends.read(1, SendFlags.INLINE, 0, 0));
        assertThat(sends.stagedWrs()).isZero();
    }

    @Test
    void inlineDataIsCopiedAtOnce() {
        byte[] heap = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        MemorySegment data = MemorySegment.ofArray(heap);
        sends.send(1, SendFlags.SIGNALED).inline(data, 1, 8);
        sends.send(2, SendFlags.SIGNALED).inline(data, 0, 1).inline(data, 8, 1);
        data.fill((byte) 0);
        sends.flush();
        assertThat(Stub.posted(0).firstBytes()).containsExactly(2, 3, 4, 5, 6, 7, 8, 9);
        assertThat(Stub.posted(0).flags()).isEqualTo(SendFlags.SIGNALED | SendFlags.INLINE);
        assertThat(Stub.posted(1).sges()).isEqualTo(2);
        assertThat(Stub.posted(1).lengths()).containsExactly(1, 1);
    }

    @Test
    void refusesWhatIsTooLongForInline() {
        assertThat(sends.maxInlineBytes()).isEqualTo(32);
        MemorySegment data = MemorySegment.ofArray(new byte[64]);
        sends.send(1, 0).inline(data, 0, 32);
        sends.send(2, SendFlags.INLINE).sge(region, 0, 32);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.send(3, 0).inline(data, 0, 33))
                .withMessageContaining("33 bytes are more than the 32");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.send(3, 0).inline(data, 0, 20).inline(data, 0, 13));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.send(3, SendFlags.INLINE).sge(region, 0, 33));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.send(3, 0).sge(region, 0, 20).inline(data, 0, 13));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.read(3, 0, 0, 0).inline(data, 0, 1));
        assertThatThrownBy(() -> sends.send(3, 0).inline(data, 60, 5)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(sends.stagedWrs()).isEqualTo(2);
        sends.flush();
    }

    @Test
    void aWorkRequestWhoseMemoryIsGoneIsNotStaged() throws Exception {
        sends.send(1, SendFlags.SIGNALED).sge(region, 0, 8);
        Arena closed = Arena.ofConfined();
        MemorySegment gone = closed.allocate(8);
        closed.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> sends.send(2, SendFlags.SIGNALED).inline(gone, 0, 8));
        MemorySegment[] foreign = new MemorySegment[1];
        Thread other =
                Thread.ofPlatform().start(() -> foreign[0] = Arena.ofConfined().allocate(8));
        other.join();
        assertThatThrownBy(() -> sends.send(2, SendFlags.SIGNALED).inline(foreign[0], 0, 8))
                .isInstanceOf(WrongThreadException.class);
        AddressHandle address =
                domain.createAddressHandle(AddressVector.global(1, new GlobalRoute(Gid.ZERO, 3, 255, 0, 0)));
        address.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> sends.send(2, SendFlags.SIGNALED).to(address, 1, 1));
        MemoryRegion left = domain.registerMemory(arena.allocate(64), EnumSet.of(AccessFlag.MW_BIND));
        left.close();
        try (MemoryWindow window = domain.allocateMemoryWindow(WindowType.TYPE_2)) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> sends.bindWindow(
                            2, SendFlags.SIGNALED, window, 5, left, 0, 64, EnumSet.of(AccessFlag.REMOTE_READ)));
        }
        assertThat(sends.stagedWrs()).isOne();
        assertThatIllegalStateException().isThrownBy(() -> sends.sge(region, 0, 8));
        sends.send(3, SendFlags.SIGNALED).sge(region, 8, 8);
        sends.flush();
        assertThat(Stub.postedCount()).isEqualTo(2);
        assertThat(Stub.posted(0).workRequestId()).isOne();
        assertThat(Stub.posted(1).workRequestId()).isEqualTo(3);
        assertThat(Stub.posted(1).lengths()).containsExactly(8);
    }

    @Test
    void uncheckedPiecesArePostedAsTheyAre() {
        sends.send(1, SendFlags.SIGNALED).uncheckedSge(region.address() + 5, 7, region.localKey());
        sends.flush();
        assertThat(Stub.posted(0).addresses()).containsExactly(region.address() + 5);
        assertThat(Stub.posted(0).lengths()).containsExactly(7);
        assertThat(Stub.posted(0).keys()).containsExactly(region.localKey());
        ReceiveQueue receives = queuePair.receiveQueue();
        receives.receive(2)
                .uncheckedSge(region.address(), 8, region.localKey())
                .uncheckedSge(region.address() + 64, 9, region.localKey());
        receives.flush();
        assertThat(Stub.posted(1).lengths()).containsExactly(8, 9);
        // How many there may be is checked all the same: there is no room for more.
        assertThatIllegalArgumentException()
                .isThrownBy(() -> receives.receive(3)
                        .uncheckedSge(0, 1, 0)
                        .uncheckedSge(0, 1, 0)
                        .uncheckedSge(0, 1, 0));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sends.send(3, SendFlags.INLINE).uncheckedSge(region.address(), 33, 0));
        assertThat(receives.stagedWrs() + sends.stagedWrs()).isZero();
        assertThatIllegalStateException().isThrownBy(() -> sends.uncheckedSge(0, 1, 0));
        assertThatIllegalStateException().isThrownBy(() -> receives.uncheckedSge(0, 1, 0));
    }

    @Test
    void receivesArePostedInLists() {
        ReceiveQueue receives = queuePair.receiveQueue();
        for (int i = 0; i < DEPTH; i++) {
            receives.receive(i).sge(region, i * 16L, 16);
        }
        assertThat(receives.isFull()).isTrue();
        receives.flush();
        assertThat(Stub.postCalls()).isOne();
        assertThat(Stub.postedCount()).isEqualTo(DEPTH);
        assertThat(Stub.posted(3).addresses()).containsExactly(region.address() + 48);
        receives.receive(9);
        assertThatThrownBy(receives::flush)
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("the receive queue is full");
        receives.discard();
        assertThat(receives.stagedWrs()).isZero();
    }

    @Test
    void sharedReceivesArePostedToTheirQueue() {
        try (SharedReceiveQueue shared = domain.createSharedReceiveQueue(2, 1);
                QueuePair user = domain.createQueuePair(
                        QueuePairOptions.reliable(completions, new QueuePairCapabilities(1, 0, 1, 0, 0))
                                .withSharedReceives(shared))) {
            assertThatIllegalStateException().isThrownBy(user::receiveQueue).withMessageContaining("shared");
            shared.receiveQueue().receive(1).sge(region, 0, 16);
            shared.receiveQueue().receive(2).sge(region, 0, 16);
            shared.receiveQueue().flush();
            assertThat(Stub.postedCount()).isEqualTo(2);
            shared.receiveQueue().receive(3).sge(region, 0, 16);
            assertThatThrownBy(shared.receiveQueue()::flush).hasMessageContaining("shared receive queue is full");
            shared.armLimit(1);
            assertThat(shared.queryLimitWrs()).isOne();
            shared.resize(4);
            assertThat(shared.queryDepthWrs()).isEqualTo(4);
        }
    }

    @Test
    void resizeKeepsWhatIsThere() {
        sends.send(5, SendFlags.SIGNALED);
        sends.flush();
        completions.resize(128);
        assertThat(completions.entries()).isEqualTo(128);
        assertThat(completions.poll(done)).isOne();
        assertThat(done.workRequestId(0)).isEqualTo(5);
        assertThatThrownBy(() -> completions.resize(4)).isInstanceOf(VerbsException.class);
    }

    @Test
    void postingAndPollingAllocateNothing() {
        Stub.call("stub_log", 0);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        MemorySegment payload = arena.allocate(ValueLayout.JAVA_LONG);
        // Compiled code allocates nothing; when it gets compiled depends on how busy the machine is.
        long deadline = System.nanoTime() + 60_000_000_000L;
        long allocated;
        do {
            long before = threads.getCurrentThreadAllocatedBytes();
            loop(100_000, payload);
            allocated = threads.getCurrentThreadAllocatedBytes() - before;
        } while (allocated >= 1000 && System.nanoTime() < deadline);
        // 300,000 work requests and 100,000 polls; a hundred bytes would be one object in all of it.
        assertThat(allocated).isLessThan(1000);
    }

    private void loop(int rounds, MemorySegment payload) {
        for (int i = 0; i < rounds; i++) {
            sends.send(i, 0).sge(region, 0, 64);
            sends.send(i, 0).inline(payload, 0, 8);
            sends.write(i, SendFlags.SIGNALED, 0x1000, 7).sge(region, 64, 64);
            if (sends.tryFlush() != 0
                    || completions.poll(done) != 1
                    || !done.isSuccess(0)
                    || done.workRequestId(0) != i) {
                throw new AssertionError("round " + i);
            }
        }
    }
}
