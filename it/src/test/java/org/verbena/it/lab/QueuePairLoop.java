package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.WorkCompletionOpcode;

/** Two queue pairs of one device that are connected with each other by hand, and what they need. */
final class QueuePairLoop implements AutoCloseable {
    static final int DEPTH = 16;
    static final int REGION_BYTES = 64 * 1024;

    /** 268 ms, with few retries: tests of failures do not wait long, and a guest that pauses fails no other. */
    static final int ACK_TIMEOUT = 16;

    static final EnumSet<AccessFlag> ALL_RIGHTS = EnumSet.of(
            AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE, AccessFlag.REMOTE_ATOMIC);
    private static final Duration LIMIT = Patience.LIMIT;

    /** One side. */
    static final class Side implements AutoCloseable {
        final QueuePair queuePair;
        final CompletionQueue completions;
        final MemoryRegion region;
        private final WorkCompletions polled = new WorkCompletions(4);
        private final Deque<Completion> waiting = new ArrayDeque<>();

        private Side(QueuePair queuePair, CompletionQueue completions, MemoryRegion region) {
            this.queuePair = queuePair;
            this.completions = completions;
            this.region = region;
        }

        /** The next completion, which must come in time. */
        Completion next() {
            long deadline = System.nanoTime() + LIMIT.toNanos();
            while (waiting.isEmpty()) {
                assertThat(System.nanoTime()).as("no completion in " + LIMIT).isLessThan(deadline);
                poll();
            }
            return waiting.remove();
        }

        /** What has completed and was not asked for yet. */
        List<Completion> others() {
            poll();
            List<Completion> all = new ArrayList<>(waiting);
            waiting.clear();
            return all;
        }

        private void poll() {
            int count = completions.poll(polled);
            for (int i = 0; i < count; i++) {
                boolean success = polled.isSuccess(i);
                waiting.add(new Completion(
                        polled.workRequestId(i),
                        polled.status(i),
                        success ? polled.opcode(i) : WorkCompletionOpcode.UNKNOWN,
                        success ? polled.lengthBytes(i) : 0,
                        success && polled.hasImmediateData(i) ? polled.immediateData(i) : 0,
                        polled.queuePairNumber(i)));
            }
        }

        MemorySegment memory() {
            return region.segment();
        }

        void toError() {
            queuePair.modify(QueuePairAttributes.to(QueuePairState.ERR).build());
        }

        @Override
        public void close() {
            queuePair.close();
            region.close();
            completions.close();
            polled.close();
        }
    }

    /** A copy of a completion. */
    record Completion(
            long id,
            CompletionStatus status,
            WorkCompletionOpcode opcode,
            int lengthBytes,
            int immediate,
            int queuePairNumber) {}

    final Context context;
    final ProtectionDomain domain;
    final CompletionChannel channel;
    final @Nullable SharedReceiveQueue shared;
    final Side left;
    final Side right;
    private final Arena arena = Arena.ofShared();

    QueuePairLoop(LabDevice device, QueuePairType type) {
        this(device, type, false);
    }

    QueuePairLoop(LabDevice device, QueuePairType type, boolean sharedReceives) {
        context = Verbs.device(device.deviceName()).open();
        domain = context.allocateProtectionDomain();
        channel = context.createCompletionChannel();
        shared = sharedReceives ? domain.createSharedReceiveQueue(DEPTH, 1) : null;
        left = side(type);
        right = side(type);
    }

    private Side side(QueuePairType type) {
        CompletionQueue completions = context.createCompletionQueue(4 * DEPTH, channel, 0);
        MemoryRegion region = domain.registerMemory(arena.allocate(REGION_BYTES, 4096), ALL_RIGHTS);
        QueuePairOptions options = QueuePairOptions.reliable(
                        completions, new QueuePairCapabilities(DEPTH, DEPTH, 3, 3, 64))
                .withType(type);
        QueuePair queuePair = domain.createQueuePair(shared == null ? options : options.withSharedReceives(shared));
        return new Side(queuePair, completions, region);
    }

    /** Takes both to RTS, connected with each other. */
    QueuePairLoop connect() {
        connect(left, right);
        return this;
    }

    /** A side whose parts somebody else closes. */
    Side foreignSide(QueuePair queuePair, CompletionQueue completions, MemoryRegion region) {
        return new Side(queuePair, completions, region);
    }

    /** Takes two to RTS, connected with each other. */
    void connect(Side one, Side two) {
        GidEntry gid = gid();
        for (Side side : List.of(one, two)) {
            Side other = side == one ? two : one;
            toInit(side);
            toReadyToReceive(side, other, gid);
            toReadyToSend(side);
        }
    }

    GidEntry gid() {
        return context.queryGids().stream()
                .filter(entry -> entry.type() == GidType.ROCE_V2
                        && entry.gid().toInetAddress().getHostAddress().equals("10.77.0.1"))
                .findFirst()
                .orElseThrow();
    }

    void toInit(Side side) {
        QueuePairAttributes.Builder init =
                QueuePairAttributes.to(QueuePairState.INIT).portNumber(1).pkeyIndex(0);
        if (side.queuePair.options().type() == QueuePairType.UD) {
            init.qkey(0x11111111);
        } else {
            init.accessFlags(AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE, AccessFlag.REMOTE_ATOMIC);
        }
        side.queuePair.modify(init.build());
    }

    void toReadyToReceive(Side side, Side other, GidEntry gid) {
        QueuePairAttributes.Builder ready = QueuePairAttributes.to(QueuePairState.RTR);
        QueuePairType type = side.queuePair.options().type();
        if (type != QueuePairType.UD) {
            ready.address(AddressVector.global(1, GlobalRoute.to(gid.gid(), gid.index())))
                    .pathMtu(Mtu.MTU_1024)
                    .destinationQueuePair(other.queuePair.number())
                    .receivePsn(psn(other));
        }
        if (type == QueuePairType.RC) {
            ready.maxReadsAsTarget(4).minRnrTimer(1);
        }
        side.queuePair.modify(ready.build());
    }

    void toReadyToSend(Side side) {
        QueuePairAttributes.Builder ready =
                QueuePairAttributes.to(QueuePairState.RTS).sendPsn(psn(side));
        if (side.queuePair.options().type() == QueuePairType.RC) {
            ready.timeout(ACK_TIMEOUT).retryCount(2).rnrRetryCount(1).maxReadsAsInitiator(4);
        }
        side.queuePair.modify(ready.build());
    }

    private static int psn(Side side) {
        return side.queuePair.number() * 7919 & 0xffffff;
    }

    @Override
    public void close() {
        left.close();
        right.close();
        if (shared != null) {
            shared.close();
        }
        channel.close();
        domain.close();
        context.close();
        arena.close();
    }
}
