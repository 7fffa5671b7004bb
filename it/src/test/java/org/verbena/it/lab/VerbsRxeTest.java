package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.it.lab.QueuePairLoop.Completion;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.AsyncEvent;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.DeviceCapability;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.MigrationState;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.OutstandingWork;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.WorkCompletionOpcode;

/** The verbs over soft RoCE, two reliable queue pairs connected by hand. */
@Tag("lab")
@Timeout(350)
class VerbsRxeTest {
    private static final int SIGNALED = SendFlags.SIGNALED;

    @Test
    void tellsWhatDeviceAndPortAre() {
        assertThat(Verbs.unavailabilityCause()).isNull();
        try (Context context = Verbs.device("rxe0").open()) {
            assertThat(context.device().transportType()).isEqualTo(TransportType.IB);
            DeviceAttributes device = context.queryDevice();
            assertThat(device.ports()).isOne();
            assertThat(device.maxQueuePairs()).isPositive();
            assertThat(device.nodeGuid()).isEqualTo(context.device().guid()).isNotZero();
            PortAttributes port = context.queryPort(1);
            assertThat(port.state()).isEqualTo(PortState.ACTIVE);
            assertThat(port.linkLayer()).isEqualTo(LinkLayer.ETHERNET);
            assertThat(port.maxMessageBytes()).isPositive();
            assertThat(port.gigabitsPerSecond()).isPositive();
            assertThat(context.queryGids()).anySatisfy(entry -> {
                assertThat(entry.type()).isEqualTo(GidType.ROCE_V2);
                assertThat(entry.gid().toInetAddress().getHostAddress()).isEqualTo("10.77.0.1");
                assertThat(context.queryGid(1, entry.index())).isEqualTo(entry);
            });
            assertThat(context.pkeyIndex(1, context.queryPkey(1, 0))).isZero();
            assertThatThrownBy(() -> context.queryPort(2)).isInstanceOf(VerbsException.class);
            assertThat(context.tryGetAsyncEvent()).isNull();
        }
    }

    @Test
    void doesEveryOperation() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            byte[] payload = new byte[8192];
            long seed = System.nanoTime();
            System.out.println("seed " + seed);
            new Random(seed).nextBytes(payload);
            MemorySegment source = loop.left.memory();
            MemorySegment target = loop.right.memory();
            source.asSlice(0, payload.length).copyFrom(MemorySegment.ofArray(payload));
            SendQueue sends = loop.left.queuePair.sendQueue();
            long remote = loop.right.region.address();
            int key = loop.right.region.remoteKey();

            // SEND of three pieces into two.
            loop.right
                    .queuePair
                    .receiveQueue()
                    .receive(50)
                    .sge(loop.right.region, 0, 100)
                    .sge(loop.right.region, 1000, 8000);
            loop.right.queuePair.receiveQueue().flush();
            sends.send(1, SIGNALED)
                    .sge(loop.left.region, 0, 10)
                    .sge(loop.left.region, 10, 4000)
                    .sge(loop.left.region, 4010, 1000);
            sends.flush();
            Completion sent = loop.left.next();
            assertThat(sent.id()).isOne();
            assertThat(sent.status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(sent.opcode()).isEqualTo(WorkCompletionOpcode.SEND);
            assertThat(sent.queuePairNumber()).isEqualTo(loop.left.queuePair.number());
            Completion received = loop.right.next();
            assertThat(received.id()).isEqualTo(50);
            assertThat(received.opcode()).isEqualTo(WorkCompletionOpcode.RECV);
            assertThat(received.lengthBytes()).isEqualTo(5010);
            assertThat(bytes(target, 0, 100)).isEqualTo(slice(payload, 0, 100));
            assertThat(bytes(target, 1000, 4910)).isEqualTo(slice(payload, 100, 5010));

            // Immediate data, and inline from the heap.
            loop.right.queuePair.receiveQueue().receive(51).sge(loop.right.region, 0, 64);
            loop.right.queuePair.receiveQueue().receive(52);
            loop.right.queuePair.receiveQueue().flush();
            sends.sendWithImmediate(2, SIGNALED, 0x01020304).inline(MemorySegment.ofArray(payload), 5, 60);
            sends.writeWithImmediate(3, SIGNALED, remote + 9000, key, 0xfffefdfc)
                    .sge(loop.left.region, 0, 8192);
            sends.flush();
            assertThat(loop.left.next().opcode()).isEqualTo(WorkCompletionOpcode.SEND);
            assertThat(loop.left.next().opcode()).isEqualTo(WorkCompletionOpcode.RDMA_WRITE);
            received = loop.right.next();
            assertThat(received.immediate()).isEqualTo(0x01020304);
            assertThat(bytes(target, 0, 60)).isEqualTo(slice(payload, 5, 65));
            received = loop.right.next();
            assertThat(received.opcode()).isEqualTo(WorkCompletionOpcode.RECV_RDMA_WITH_IMM);
            assertThat(received.immediate()).isEqualTo(0xfffefdfc);
            assertThat(received.lengthBytes()).isEqualTo(8192);
            assertThat(bytes(target, 9000, 8192)).isEqualTo(payload);

            // One-sided, in one list with one signal.
            target.set(ValueLayout.JAVA_LONG, 40_000, 5);
            sends.write(4, 0, remote + 20_000, key).sge(loop.left.region, 0, 8000);
            sends.read(5, 0, remote + 20_000, key)
                    .sge(loop.left.region, 20_000, 4000)
                    .sge(loop.left.region, 30_000, 4000);
            sends.compareAndSwap(6, 0, remote + 40_000, key, 5, 7, loop.left.region, 40_000);
            sends.compareAndSwap(7, 0, remote + 40_000, key, 5, 9, loop.left.region, 40_008);
            sends.fetchAndAdd(8, SIGNALED, remote + 40_000, key, 35, loop.left.region, 40_016);
            sends.flush();
            Completion last = loop.left.next();
            assertThat(last.id()).isEqualTo(8);
            assertThat(last.status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(last.opcode()).isEqualTo(WorkCompletionOpcode.FETCH_ADD);
            assertThat(bytes(source, 20_000, 4000)).isEqualTo(slice(payload, 0, 4000));
            assertThat(bytes(source, 30_000, 4000)).isEqualTo(slice(payload, 4000, 8000));
            assertThat(source.get(ValueLayout.JAVA_LONG, 40_000)).isEqualTo(5);
            assertThat(source.get(ValueLayout.JAVA_LONG, 40_008)).isEqualTo(7);
            assertThat(source.get(ValueLayout.JAVA_LONG, 40_016)).isEqualTo(7);
            assertThat(target.get(ValueLayout.JAVA_LONG, 40_000)).isEqualTo(42);
            assertThat(loop.left.others()).isEmpty();
            assertThat(loop.right.others()).isEmpty();
        }
    }

    @Test
    void aWrongRemoteKeyIsARemoteAccessError() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            loop.left
                    .queuePair
                    .sendQueue()
                    .write(1, 0, loop.right.region.address(), loop.right.region.remoteKey() ^ 0x5500)
                    .sge(loop.left.region, 0, 8);
            loop.left
                    .queuePair
                    .sendQueue()
                    .write(2, 0, loop.right.region.address(), loop.right.region.remoteKey())
                    .sge(loop.left.region, 0, 8);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
            Completion flushed = loop.left.next();
            assertThat(flushed.id()).isEqualTo(2);
            assertThat(flushed.status()).isEqualTo(CompletionStatus.WR_FLUSH_ERR);
            assertThat(loop.left.queuePair.queryState()).isEqualTo(QueuePairState.ERR);
        }
    }

    @Test
    void theKernelAnswersWhatAQueuePairWasGiven() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            // Not the rate limit, which Linux does not answer.
            QueuePairAttributes read = loop.left.queuePair.query(
                    QueuePairAttribute.STATE,
                    EnumSet.complementOf(EnumSet.of(QueuePairAttribute.RATE_LIMIT))
                            .toArray(QueuePairAttribute[]::new));
            assertThat(read.state()).isEqualTo(QueuePairState.RTS);
            assertThat(read.isSendQueueDraining()).isFalse();
            assertThat(read.portNumber()).isOne();
            assertThat(read.pkeyIndex()).isZero();
            assertThat(read.pathMtu()).isEqualTo(Mtu.MTU_1024);
            assertThat(read.minRnrTimer()).isOne();
            assertThat(read.timeout()).isEqualTo(QueuePairLoop.ACK_TIMEOUT);
            assertThat(read.retryCount()).isEqualTo(2);
            assertThat(read.rnrRetryCount()).isOne();
            assertThat(read.maxReadsAsInitiator()).isEqualTo(4);
            assertThat(read.maxReadsAsTarget()).isEqualTo(4);
            assertThat(read.destinationQueuePair()).isEqualTo(loop.right.queuePair.number());
            assertThat(read.capabilities().maxSendWrs()).isGreaterThanOrEqualTo(QueuePairLoop.DEPTH);
        }
    }

    /** Automatic path migration is InfiniBand's: Linux refuses a path on RoCE, though rxe claims the capability. */
    @Test
    void anAlternatePathIsRefusedOnRoce() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            QueuePair queuePair = loop.left.queuePair;
            assertThat(loop.context.queryDevice().capabilities()).contains(DeviceCapability.AUTO_PATH_MIG);
            assertThat(queuePair.query(QueuePairAttribute.PATH_MIG_STATE).migrationState())
                    .isEqualTo(MigrationState.MIGRATED);
            AddressVector path = queuePair.query(QueuePairAttribute.AV).address();
            assertThatThrownBy(() -> queuePair.modify(QueuePairAttributes.builder()
                            .alternatePath(path, 0, 14)
                            .migrationState(MigrationState.REARM)
                            .build()))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("ibv_modify_qp")
                    .hasMessageContaining("EINVAL")
                    .hasMessageContaining("alternate path was given on RoCE");
            assertThat(queuePair.queryState()).isEqualTo(QueuePairState.RTS);
        }
    }

    @Test
    void aReadBeyondTheRegionIsARemoteAccessError() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            loop.left
                    .queuePair
                    .sendQueue()
                    .read(1, SIGNALED, loop.right.region.address() + 4, loop.right.region.remoteKey())
                    .sge(loop.left.region, 0, QueuePairLoop.REGION_BYTES);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
        }
    }

    @Test
    void aRightThatWasNotGivenIsARemoteAccessError() {
        try (Arena arena = Arena.ofShared();
                QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect();
                MemoryRegion readOnly =
                        loop.domain.registerMemory(arena.allocate(64), EnumSet.of(AccessFlag.REMOTE_READ))) {
            loop.left
                    .queuePair
                    .sendQueue()
                    .read(1, SIGNALED, readOnly.address(), readOnly.remoteKey())
                    .sge(loop.left.region, 0, 64);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            loop.left
                    .queuePair
                    .sendQueue()
                    .write(2, SIGNALED, readOnly.address(), readOnly.remoteKey())
                    .sge(loop.left.region, 0, 64);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
        }
    }

    @Test
    void aReceiveThatIsTooSmallFailsBothSides() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            loop.right.queuePair.receiveQueue().receive(9).sge(loop.right.region, 0, 16);
            loop.right.queuePair.receiveQueue().flush();
            loop.left.queuePair.sendQueue().send(1, SIGNALED).sge(loop.left.region, 0, 17);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isIn(CompletionStatus.REM_INV_REQ_ERR, CompletionStatus.REM_OP_ERR);
            // The specification has a local length error; rxe says this.
            assertThat(loop.right.next().status()).isIn(CompletionStatus.LOC_LEN_ERR, CompletionStatus.LOC_QP_OP_ERR);
        }
    }

    @Test
    void aPeerWithoutReceivesExhaustsTheRetries() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            loop.left.queuePair.sendQueue().send(1, SIGNALED).sge(loop.left.region, 0, 17);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.RNR_RETRY_EXC_ERR);
        }
    }

    @Test
    void aPeerThatIsGoneExhaustsTheRetries() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            loop.right.queuePair.modify(
                    QueuePairAttributes.to(QueuePairState.RESET).build());
            loop.left
                    .queuePair
                    .sendQueue()
                    .write(1, SIGNALED, loop.right.region.address(), loop.right.region.remoteKey())
                    .sge(loop.left.region, 0, 17);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.RETRY_EXC_ERR);
        }
    }

    @Test
    void memoryThatIsNoLongerRegisteredIsAProtectionError() {
        try (Arena arena = Arena.ofShared();
                QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            MemoryRegion gone = loop.domain.registerMemory(arena.allocate(64), EnumSet.of(AccessFlag.LOCAL_WRITE));
            loop.left
                    .queuePair
                    .sendQueue()
                    .write(1, SIGNALED, loop.right.region.address(), loop.right.region.remoteKey())
                    .sge(gone, 0, 64);
            gone.close(); // between staging and posting
            loop.left.queuePair.sendQueue().flush();
            // The specification has a local protection error; rxe says the second, and from Linux 6.12 on the third.
            assertThat(loop.left.next().status())
                    .isIn(CompletionStatus.LOC_PROT_ERR, CompletionStatus.LOC_QP_OP_ERR, CompletionStatus.WR_FLUSH_ERR);
        }
    }

    @Test
    void errorStateFlushesEverything() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            for (int i = 0; i < 5; i++) {
                loop.left.queuePair.receiveQueue().receive(i).sge(loop.left.region, 0, 16);
            }
            loop.left.queuePair.receiveQueue().flush();
            loop.left.toError();
            for (int i = 0; i < 5; i++) {
                Completion flushed = loop.left.next();
                assertThat(flushed.id()).isEqualTo(i);
                assertThat(flushed.status()).isEqualTo(CompletionStatus.WR_FLUSH_ERR);
                assertThat(flushed.queuePairNumber()).isEqualTo(loop.left.queuePair.number());
            }
        }
    }

    @Test
    void aFullSendQueueSaysSo() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            SendQueue sends = loop.left.queuePair.sendQueue();
            int depth = loop.left.queuePair.options().capabilities().maxSendWrs();
            // A drained queue starts nothing, so that it fills up.
            loop.left.queuePair.modify(
                    QueuePairAttributes.to(QueuePairState.SQD).build());
            assertThatThrownBy(() -> {
                        for (int i = 0; i < 2 * depth; i++) {
                            if (sends.isFull()) {
                                sends.flush();
                            }
                            sends.write(i, 0, loop.right.region.address(), loop.right.region.remoteKey())
                                    .sge(loop.left.region, 0, 1);
                        }
                        sends.flush();
                    })
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("ibv_post_send")
                    .hasMessageContaining("ENOMEM")
                    .hasMessageContaining("the send queue is full");
            assertThat(sends.stagedWrs()).isPositive();
        }
    }

    @Test
    void completionsWakeTheChannel() throws Exception {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            assertThat(loop.channel.tryGetEvent()).isNull();
            for (int round = 0; round < 100; round++) {
                loop.right.completions.requestNotify(false);
                loop.right.queuePair.receiveQueue().receive(round).sge(loop.right.region, 0, 16);
                loop.right.queuePair.receiveQueue().flush();
                loop.left.queuePair.sendQueue().send(round, SIGNALED).sge(loop.left.region, 0, 16);
                loop.left.queuePair.sendQueue().flush();
                assertThat(awaitEvent(loop)).isSameAs(loop.right.completions);
                assertThat(loop.right.next().id()).isEqualTo(round);
                assertThat(loop.left.next().id()).isEqualTo(round);
            }
            // Solicited only: a plain send makes no event, a solicited one does.
            loop.right.completions.requestNotify(true);
            for (int id = 0; id < 2; id++) {
                loop.right.queuePair.receiveQueue().receive(id).sge(loop.right.region, 0, 16);
            }
            loop.right.queuePair.receiveQueue().flush();
            loop.left.queuePair.sendQueue().send(0, SIGNALED).sge(loop.left.region, 0, 16);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            assertThat(loop.right.next().id()).isZero();
            assertThat(loop.channel.tryGetEvent()).isNull();
            loop.left
                    .queuePair
                    .sendQueue()
                    .send(1, SIGNALED | SendFlags.SOLICITED)
                    .sge(loop.left.region, 0, 16);
            loop.left.queuePair.sendQueue().flush();
            assertThat(awaitEvent(loop)).isSameAs(loop.right.completions);
        }
    }

    private static CompletionQueue awaitEvent(QueuePairLoop loop) {
        return Patience.untilThere("an event of a completion queue", loop.channel::tryGetEvent);
    }

    @Test
    void sharedReceivesServeBothAndTellWhenTheyRunLow() throws Exception {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC, true).connect()) {
            SharedReceiveQueue shared = loop.shared;
            assertThat(shared.queryDepthWrs()).isGreaterThanOrEqualTo(QueuePairLoop.DEPTH);
            for (int i = 0; i < 4; i++) {
                shared.receiveQueue().receive(i).sge(loop.right.region, i * 64L, 64);
            }
            shared.receiveQueue().flush();
            shared.armLimit(3);
            assertThat(shared.queryLimitWrs()).isEqualTo(3);
            for (QueuePairLoop.Side from : List.of(loop.left, loop.right)) {
                QueuePairLoop.Side target = from == loop.left ? loop.right : loop.left;
                from.queuePair.sendQueue().send(7, SIGNALED).sge(from.region, 0, 8);
                from.queuePair.sendQueue().flush();
                assertThat(from.next().opcode()).isEqualTo(WorkCompletionOpcode.SEND);
                Completion received = target.next();
                assertThat(received.opcode()).isEqualTo(WorkCompletionOpcode.RECV);
                assertThat(received.id()).isEqualTo(from == loop.left ? 0 : 1);
                assertThat(received.queuePairNumber()).isEqualTo(target.queuePair.number());
            }
            AsyncEvent event = awaitAsync(loop.context, AsyncEventType.SRQ_LIMIT_REACHED);
            assertThat(event.source()).isSameAs(shared);
            assertThat(shared.queryLimitWrs()).isZero(); // disarmed
        }
    }

    @Test
    void completionsOfWorkThatWasGivenUpAreUnknown() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC, true).connect()) {
            OutstandingWork<String> outstanding = new OutstandingWork<>(2);
            long[] ids = {outstanding.put("given up"), outstanding.put("waited for")};
            for (long id : ids) {
                loop.shared.receiveQueue().receive(id).sge(loop.right.region, 0, 64);
            }
            loop.shared.receiveQueue().flush();
            assertThat(outstanding.take(ids[0])).isEqualTo("given up");
            long another = outstanding.put("another, in its place");
            for (int i = 0; i < 2; i++) {
                loop.left.queuePair.sendQueue().send(i, SIGNALED).sge(loop.left.region, 0, 8);
            }
            loop.left.queuePair.sendQueue().flush();
            assertThat(outstanding.take(loop.right.next().id())).isNull();
            assertThat(outstanding.take(loop.right.next().id())).isEqualTo("waited for");
            assertThat(outstanding.take(another)).isEqualTo("another, in its place");
        }
    }

    /** {@code sq_sig_all}, and the order of scatter/gather elements, one of them empty. */
    @Test
    void aQueuePairThatSignalsAllNeedsNoFlagAndGathersPiecesInOrder() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC);
                CompletionQueue completions = loop.context.createCompletionQueue(16);
                QueuePair signalling = loop.domain.createQueuePair(new QueuePairOptions(
                        QueuePairType.RC,
                        completions,
                        completions,
                        null,
                        new QueuePairCapabilities(4, 4, 3, 1, 0),
                        true))) {
            QueuePairLoop.Side sender = loop.foreignSide(signalling, completions, loop.right.region);
            loop.connect(loop.left, sender);
            sender.memory().setString(0, "first");
            sender.memory().setString(100, "second");
            signalling
                    .sendQueue()
                    .write(1, 0, loop.left.region.address(), loop.left.region.remoteKey())
                    .sge(sender.region, 100, 6)
                    .sge(sender.region, 0, 0)
                    .sge(sender.region, 0, 6)
                    .flush();
            Completion written = sender.next();
            assertThat(written.id()).isOne();
            assertThat(written.opcode()).isEqualTo(WorkCompletionOpcode.RDMA_WRITE);
            assertThat(loop.left.memory().getString(0)).isEqualTo("secondfirst");
        }
    }

    @Test
    void aCompletionQueueGrowsWithWhatIsInIt() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            for (int i = 0; i < 8; i++) {
                loop.left
                        .queuePair
                        .sendQueue()
                        .write(i, SIGNALED, loop.right.region.address(), loop.right.region.remoteKey())
                        .sge(loop.left.region, 0, 8);
            }
            loop.left.queuePair.sendQueue().flush();
            Completion first = loop.left.next();
            assertThat(first.id()).isZero();
            loop.left.completions.resize(500);
            assertThat(loop.left.completions.entries()).isGreaterThanOrEqualTo(500);
            for (int i = 1; i < 8; i++) {
                assertThat(loop.left.next().id()).isEqualTo(i);
            }
        }
    }

    @Test
    void walksThroughAllStates() throws Exception {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC)) {
            assertThat(loop.left.queuePair.queryState()).isEqualTo(QueuePairState.RESET);
            assertThatThrownBy(() -> loop.toReadyToSend(loop.left)).isInstanceOf(IllegalArgumentException.class);
            assertMissing(
                    loop,
                    QueuePairAttributes.to(QueuePairState.INIT).pkeyIndex(0).accessFlags(),
                    "RC queue pair RESET to INIT also needs [PORT]");
            loop.toInit(loop.left);
            assertMissing(
                    loop,
                    QueuePairAttributes.to(QueuePairState.RTR)
                            .pathMtu(Mtu.MTU_1024)
                            .destinationQueuePair(1)
                            .maxReadsAsTarget(1)
                            .minRnrTimer(1),
                    "RC queue pair INIT to RTR also needs [AV, RQ_PSN]");
            loop.toReadyToReceive(loop.left, loop.right, loop.gid());
            assertThat(loop.left.queuePair.queryState()).isEqualTo(QueuePairState.RTR);
            assertMissing(
                    loop,
                    QueuePairAttributes.to(QueuePairState.RTS)
                            .timeout(10)
                            .rnrRetryCount(1)
                            .maxReadsAsInitiator(1),
                    "RC queue pair RTR to RTS also needs [RETRY_CNT, SQ_PSN]");
            assertMissing(
                    loop,
                    QueuePairAttributes.to(QueuePairState.SQD),
                    "there is no transition of an RC queue pair RTR to SQD");
            loop.left.queuePair.modify(
                    QueuePairAttributes.to(QueuePairState.RESET).build());
            loop.connect();
            assertThat(loop.left.queuePair.queryState()).isEqualTo(QueuePairState.RTS);
            QueuePairAttributes attributes = loop.left.queuePair.query(
                    QueuePairAttribute.PATH_MTU,
                    QueuePairAttribute.DEST_QPN,
                    QueuePairAttribute.AV,
                    QueuePairAttribute.RETRY_CNT,
                    QueuePairAttribute.TIMEOUT,
                    QueuePairAttribute.SQ_PSN,
                    QueuePairAttribute.ACCESS_FLAGS,
                    QueuePairAttribute.CAP);
            assertThat(attributes.destinationQueuePair()).isEqualTo(loop.right.queuePair.number());
            assertThat(attributes.retryCount()).isEqualTo(2);
            assertThat(attributes.timeout()).isEqualTo(QueuePairLoop.ACK_TIMEOUT);
            assertThat(attributes.address().route().destination())
                    .isEqualTo(loop.gid().gid());
            assertThat(attributes.accessFlags()).contains(AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE);
            assertThat(attributes.capabilities().maxSendWrs()).isGreaterThanOrEqualTo(QueuePairLoop.DEPTH);
            loop.left.queuePair.modify(QueuePairAttributes.to(QueuePairState.SQD)
                    .notifyWhenDrained(true)
                    .build());
            assertThat(loop.left.queuePair.queryState()).isEqualTo(QueuePairState.SQD);
            assertThat(awaitAsync(loop.context, AsyncEventType.SQ_DRAINED).source())
                    .isSameAs(loop.left.queuePair);
            loop.left.queuePair.modify(
                    QueuePairAttributes.to(QueuePairState.RTS).build());
            loop.left
                    .queuePair
                    .sendQueue()
                    .write(1, SIGNALED, loop.right.region.address(), loop.right.region.remoteKey())
                    .sge(loop.left.region, 0, 8);
            loop.left.queuePair.sendQueue().flush();
            assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
            loop.left.toError();
            assertThat(loop.left.queuePair.queryState()).isEqualTo(QueuePairState.ERR);
            assertThatThrownBy(() -> loop.toReadyToSend(loop.left)).hasMessageContaining("no transition");
            loop.left.queuePair.modify(
                    QueuePairAttributes.to(QueuePairState.RESET).build());
            assertThat(loop.left.queuePair.queryState()).isEqualTo(QueuePairState.RESET);
            loop.toInit(loop.left);
            assertThatThrownBy(() -> loop.left.queuePair.modify(
                            QueuePairAttributes.builder().portNumber(77).build()))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("EINVAL");
        }
    }

    private static void assertMissing(QueuePairLoop loop, QueuePairAttributes.Builder attributes, String message) {
        assertThatThrownBy(() -> loop.left.queuePair.modify(attributes.build()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
    }

    @Test
    void aCompletionQueueIsResizedUnderLoad() {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            int outstanding = QueuePairLoop.DEPTH / 2;
            int total = 40 * outstanding;
            int posted = 0;
            for (int completed = 0; completed < total; completed++) {
                while (posted < total && posted - completed < outstanding) {
                    loop.left
                            .queuePair
                            .sendQueue()
                            .write(posted++, SIGNALED, loop.right.region.address(), loop.right.region.remoteKey())
                            .sge(loop.left.region, 0, 8);
                }
                loop.left.queuePair.sendQueue().flush();
                if (completed % 5 == 0) {
                    // The device completes writes meanwhile.
                    loop.left.completions.resize(completed % 10 == 0 ? 4 * QueuePairLoop.DEPTH : outstanding + 1);
                }
                Completion next = loop.left.next();
                assertThat(next.id()).isEqualTo(completed);
                assertThat(next.status()).isEqualTo(CompletionStatus.SUCCESS);
            }
            assertThat(loop.left.others()).isEmpty();
        }
    }

    @Test
    void tellsThatACompletionQueueRanOver() throws Exception {
        try (QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect()) {
            loop.left.completions.resize(2);
            int tooMany = loop.left.completions.entries() + 2;
            assertThat(tooMany).isLessThan(QueuePairLoop.DEPTH);
            for (int i = 0; i < tooMany; i++) {
                loop.left
                        .queuePair
                        .sendQueue()
                        .write(i, SIGNALED, loop.right.region.address(), loop.right.region.remoteKey())
                        .sge(loop.left.region, 0, 8);
            }
            loop.left.queuePair.sendQueue().flush();
            assertThat(awaitAsync(loop.context, AsyncEventType.CQ_ERR).source()).isSameAs(loop.left.completions);
        }
    }

    @Test
    void theKernelRefusesWhatIsOverTheLimits() {
        try (Context context = Verbs.device("rxe0").open();
                ProtectionDomain domain = context.allocateProtectionDomain()) {
            int max = context.queryDevice().maxCompletionQueueEntries();
            assertThatThrownBy(() -> context.createCompletionQueue(max + 1))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("maxCompletionQueueEntries");
            assertThatThrownBy(() -> domain.createSharedReceiveQueue(1 << 28, 1))
                    .isInstanceOf(VerbsException.class);
        }
    }

    @Test
    void openingAndClosingLeavesNothingBehind() throws Exception {
        for (int i = 0; i < 5; i++) {
            new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect().close();
        }
        long before = descriptors();
        for (int i = 0; i < 50; i++) {
            new QueuePairLoop(LabDevice.RXE, QueuePairType.RC).connect().close();
        }
        // Others of this process may close theirs meanwhile, or have one open for a moment.
        Patience.until("descriptors are closed", () -> descriptors() <= before);
    }

    private static long descriptors() {
        try (var open = java.nio.file.Files.list(java.nio.file.Path.of("/proc/self/fd"))) {
            return open.count();
        } catch (IOException noProc) {
            throw new AssertionError(noProc);
        }
    }

    private static byte[] bytes(MemorySegment memory, long offset, long length) {
        return memory.asSlice(offset, length).toArray(ValueLayout.JAVA_BYTE);
    }

    private static byte[] slice(byte[] bytes, int from, int to) {
        return java.util.Arrays.copyOfRange(bytes, from, to);
    }

    /** Waits for an asynchronous event. */
    static AsyncEvent awaitAsync(Context context, AsyncEventType type) {
        return Patience.untilThere("the event " + type, () -> {
            AsyncEvent event = context.tryGetAsyncEvent();
            return event != null && event.type() == type ? event : null;
        });
    }
}
