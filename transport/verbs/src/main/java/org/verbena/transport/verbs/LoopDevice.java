package org.verbena.transport.verbs;

import io.netty.util.collection.IntObjectHashMap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkStatus;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.ThreadDomain;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.work.CompletionStatus;

/**
 * What one completion loop has on one device: a completion channel, completion queues, the table of endpoints by which
 * completions are routed, and the shared receive queue if one was asked for. Not thread-safe; confined to the loop's
 * thread.
 *
 * <p>A completion queue that overflows is lost, so every endpoint reserves entries for all it can post before its queue
 * pair is made. Where no queue has room, another one is added, twice as large as the largest; if that is not possible
 * the connection is refused. Queues are never resized: a driver may free the queue in use when the kernel refuses
 * (rdma-core 65, bnxt_re/verbs.c), or when it cannot map the new one (rxe/rxe.c), and polling then ends the JVM.
 */
final class LoopDevice {
    private static final Logger LOG = LoggerFactory.getLogger(LoopDevice.class);

    /** Completions of one poll: enough to make the call cheap, few enough to stay in the cache. */
    private static final int MAX_POLL = 64;

    /**
     * Receives of a shared receive queue: enough for bursts from many peers, and 1,024 buffers fit the receive pool's
     * budget.
     */
    private static final int SHARED_RECEIVES = 1024;

    /** SGEs of one of them. */
    private static final int SHARED_RECEIVE_SGES = 4;

    private static final int FIRST_TABLE_LENGTH = 16;

    private final CompletionIoHandler handler;
    private final VerbsDevice device;
    private final CompletionChannel channel;
    private final int vector;

    /**
     * Queue pairs on it have a doorbell register of their own and no locks: only this loop posts on them. Null if there
     * is none.
     */
    private @Nullable ThreadDomain threadDomain;

    /** The device's protection domain, with the thread domain. */
    private @Nullable ProtectionDomain ownDomain;

    private final WorkCompletions completions;
    private final List<LoopQueue> queues = new ArrayList<>();

    /** The number of queues that are armed and whose event has not been taken. */
    private int armedQueues;

    private @Nullable LoopEndpoint[] endpoints = new LoopEndpoint[FIRST_TABLE_LENGTH];
    private short[] generations = new short[FIRST_TABLE_LENGTH];
    private int[] freeIndexes = new int[FIRST_TABLE_LENGTH];
    private int freeCount;
    private int usedIndexes;

    /**
     * Endpoints that take receives from the shared queue, by queue pair number: such a completion's slot says nothing
     * about the endpoint.
     */
    private final IntObjectHashMap<LoopEndpoint> sharing = new IntObjectHashMap<>();

    private @Nullable VerbsSharedReceiveQueue sharedReceives;

    /** Earlier ones, which have failed, until their endpoints are gone. */
    private final List<VerbsSharedReceiveQueue> brokenSharedReceives = new ArrayList<>();

    private int sharedReceiveQueues;

    /** Endpoints with completions in this batch. */
    private LoopEndpoint[] touched = new LoopEndpoint[FIRST_TABLE_LENGTH];

    private int touchedCount;
    private long staleCompletions;

    /** The device is lost, or the channel is broken: it serves the endpoints it has until they have ended. */
    private boolean isRetired;

    LoopDevice(CompletionIoHandler handler, VerbsDevice device) {
        this.handler = handler;
        this.device = device;
        channel = device.context().createCompletionChannel();
        vector = device.nextVector();
        if (device.context().driverFamily().sharesDoorbells()) {
            makeOwnDomain();
        }
        completions = new WorkCompletions(Math.min(MAX_POLL, handler.options().maxCompletionsPerTurn()));
    }

    private void makeOwnDomain() {
        try {
            NativeFailures.tryTwice(() -> {
                ThreadDomain made = threadDomain == null ? device.context().allocateThreadDomain() : threadDomain;
                threadDomain = made;
                ownDomain = device.context()
                        .allocateParentDomain(device.memoryDomain().protectionDomain(), made);
            });
        } catch (NativeRdmaException | UnsupportedOperationException refused) {
            LOG.debug("A loop shares its doorbell registers on {}", device.name(), refused);
            closeOwnDomain();
        }
    }

    private void closeOwnDomain() {
        if (ownDomain != null) {
            ownDomain.close();
        }
        if (threadDomain != null) {
            threadDomain.close();
        }
    }

    VerbsDevice device() {
        return device;
    }

    /** What queue pairs of this loop are made on. Memory is registered in the device's. */
    ProtectionDomain domain() {
        ProtectionDomain own = ownDomain;
        return own == null ? device.memoryDomain().protectionDomain() : own;
    }

    int fd() {
        return channel.fd();
    }

    // ---- room in completion queues

    /** A completion queue, and how much of it is promised to endpoints. */
    static final class LoopQueue {
        private final CompletionQueue queue;
        private int reserved;
        private int sharedEndpoints;
        private boolean armed;

        /**
         * Completions were found while it was armed: their event is on its way or was lost, as adapters lose
         * interrupts.
         */
        private boolean isEventDue;

        /** Why it serves the endpoints it has until they have drained, and no others; null while all is well. */
        private @Nullable RuntimeException failure;

        /** It completes receives of a shared queue that has failed, which take the room of another one. */
        private boolean isClosedToOthers;

        /** Nothing more can be polled from it. */
        private boolean unpollable;

        LoopQueue(CompletionQueue queue) {
            this.queue = queue;
        }

        CompletionQueue queue() {
            return queue;
        }
    }

    /**
     * Makes room for an endpoint's completions.
     *
     * @param entries how many work requests it can have out
     * @param shared whether it also completes receives of the shared queue
     * @return the queue, with the room reserved until {@link #release}
     */
    LoopQueue reserve(int entries, boolean shared) {
        int max = device.attributes().maxCompletionQueueEntries();
        int shareDepth = shared ? sharedReceiveQueue().depth() : 0;
        for (LoopQueue candidate : queues) {
            int needed = candidate.sharedEndpoints == 0 ? entries + shareDepth : entries;
            if (candidate.failure == null
                    && !candidate.isClosedToOthers
                    && candidate.queue.entries() - candidate.reserved >= needed) {
                return take(candidate, entries, shared);
            }
        }
        int needed = entries + shareDepth;
        if (needed > max) {
            throw new ConnectionException("a connection with " + entries + " work requests"
                    + (shared ? " and a shared receive queue of " + shareDepth : "")
                    + " needs a completion queue of " + needed + " entries, but those of " + device.name()
                    + " have at most " + max + ": lower sendDepth or receiveDepth");
        }
        int largest =
                queues.stream().mapToInt(queue -> queue.queue.entries()).max().orElse(0);
        int wanted = Math.max(handler.options().completionQueueDepth(), 2 * largest);
        LoopQueue added = new LoopQueue(
                device.context().createCompletionQueue(Math.max(needed, Math.min(wanted, max)), channel, vector));
        queues.add(added);
        LOG.debug("Loop {} has {} completion queues on {}", handler.ordinal(), queues.size(), device.name());
        return take(added, entries, shared);
    }

    private LoopQueue take(LoopQueue queue, int entries, boolean shared) {
        if (shared && queue.sharedEndpoints++ == 0) {
            queue.reserved += sharedReceiveDepth();
        }
        queue.reserved += entries;
        return queue;
    }

    /** Gives back what was reserved, when the queue pair is gone. */
    void release(LoopQueue queue, int entries, @Nullable VerbsSharedReceiveQueue shared) {
        queue.reserved -= entries;
        if (shared != null && --queue.sharedEndpoints == 0) {
            queue.reserved -= sharedReceiveDepth();
            queue.isClosedToOthers = false;
        }
        if (shared != null && shared.removeUser() == 0 && shared.isBroken()) {
            handler.execute(() -> closeBroken(shared)); // this may be within a batch
        }
        if (isRetired) {
            handler.execute(this::closeIfIdle); // this may be within a batch
        }
    }

    boolean isRetired() {
        return isRetired;
    }

    /** It is for no more endpoints: gives the queues back as soon as no endpoint needs them. Any thread. */
    void retire() {
        handler.execute(() -> {
            isRetired = true;
            closeIfIdle();
        });
    }

    private void closeIfIdle() {
        if (queues.stream().allMatch(queue -> queue.reserved == 0)) {
            handler.close(this);
        }
    }

    private int sharedReceiveDepth() {
        int asked = handler.options().sharedReceiveDepth();
        int limit = device.attributes().maxSharedReceives();
        if (asked == CompletionLoopOptions.PROVIDER_DEFAULT) {
            return Math.min(SHARED_RECEIVES, limit);
        }
        if (asked > limit) {
            throw new ConnectionException(
                    "sharedReceiveDepth " + asked + " is over the limit of " + device.name() + ", which is " + limit);
        }
        return asked;
    }

    /** The loop's shared receive queue here; made with the first endpoint that asks for it. */
    VerbsSharedReceiveQueue sharedReceiveQueue() {
        VerbsSharedReceiveQueue known = sharedReceives;
        if (known == null) {
            known = new VerbsSharedReceiveQueue(
                    device,
                    sharedReceiveQueues++,
                    sharedReceiveDepth(),
                    Math.min(SHARED_RECEIVE_SGES, device.attributes().maxSharedReceiveSges()));
            sharedReceives = known;
        }
        return known;
    }

    // ---- the table of endpoints

    /**
     * Gives an endpoint an index.
     *
     * @param endpoint the endpoint, with completions on a queue of this
     * @return its index; with {@link #generation} it makes the ids of its work requests
     * @throws ConnectionException the queue has broken since it was reserved, or there are too many endpoints
     */
    int add(LoopEndpoint endpoint) {
        for (LoopQueue queue : queues) {
            RuntimeException failure = queue.failure;
            if (failure != null && endpoint.completesOn(queue)) {
                throw new ConnectionException(brokenBy(failure), failure);
            }
        }
        int index;
        if (freeCount > 0) {
            index = freeIndexes[--freeCount];
        } else {
            if (usedIndexes == WorkRequestId.MAX_ENDPOINTS) {
                throw new ConnectionException("this loop has " + usedIndexes + " connections, which is all that it can"
                        + " distinguish: use more loops");
            }
            index = usedIndexes++;
            if (index == endpoints.length) {
                endpoints = Arrays.copyOf(endpoints, 2 * index);
                generations = Arrays.copyOf(generations, 2 * index);
                freeIndexes = Arrays.copyOf(freeIndexes, 2 * index);
            }
        }
        generations[index]++;
        endpoints[index] = endpoint;
        return index;
    }

    int generation(int index) {
        return generations[index] & 0xffff;
    }

    boolean hasEndpoints() {
        return freeCount < usedIndexes;
    }

    void remove(int index) {
        endpoints[index] = null;
        freeIndexes[freeCount++] = index;
    }

    void share(int queuePairNumber, LoopEndpoint endpoint) {
        sharing.put(queuePairNumber, endpoint);
    }

    void unshare(int queuePairNumber) {
        sharing.remove(queuePairNumber);
    }

    // ---- completions

    /**
     * Arms the queues that are not armed already, and those whose event may be lost. A second event is harmless, and a
     * lost one costs no more than one sleep.
     */
    void arm() {
        for (int i = 0; i < queues.size(); i++) {
            LoopQueue queue = queues.get(i);
            if ((!queue.armed || queue.isEventDue) && queue.failure == null) {
                try {
                    queue.queue.requestNotify(false);
                } catch (NativeRdmaException refused) {
                    // Poll the queue until its endpoints have drained; their end wakes the loop.
                    breakQueue(queue, refused);
                    continue;
                }
                armedQueues += queue.armed ? 0 : 1;
                queue.armed = true;
                queue.isEventDue = false;
            }
        }
    }

    /**
     * Takes the events of the channel: each disarmed its queue, or did so before it was armed once more; then another
     * one may be left, for the next call.
     *
     * @return false if the channel is broken, which it stays: not to be watched any more, and replaced for the next
     *     endpoint
     */
    boolean takeEvents() {
        CompletionQueue queue;
        do {
            try {
                queue = channel.tryGetEvent();
            } catch (NativeRdmaException failure) {
                isRetired = true;
                handler.execute(this::closeIfIdle); // this may be within a batch
                for (int i = 0; i < queues.size(); i++) {
                    breakQueue(queues.get(i), failure);
                }
                return false;
            }
            for (int i = 0; i < queues.size(); i++) {
                if (queues.get(i).queue == queue && queues.get(i).armed) {
                    queues.get(i).armed = false;
                    queues.get(i).isEventDue = false;
                    armedQueues--;
                }
            }
        } while (queue != null && armedQueues > 0);
        return true;
    }

    /**
     * Takes completions off the queues and gives each to its endpoint.
     *
     * @param max after how many a queue has had its turn; a batch is never cut short, so it can be some more
     * @return how many there were
     */
    int poll(int max) {
        int total = 0;
        for (int i = 0; i < queues.size(); i++) {
            LoopQueue queue = queues.get(i);
            int polled = 0;
            int count;
            do {
                count = pollOnce(queue);
                queue.isEventDue |= count > 0 && queue.armed;
                for (int j = 0; j < count; j++) {
                    dispatch(j);
                }
                polled += count;
            } while (count == completions.capacity() && polled < max);
            total += polled;
        }
        if (touchedCount > 0) {
            endBatch();
        }
        return total;
    }

    /** Takes what is in the queues now, and hardly more, out of turn. Not within a callback. */
    void pollAll() {
        int largest = 0;
        for (int i = 0; i < queues.size(); i++) {
            largest = Math.max(largest, queues.get(i).queue.entries());
        }
        poll(largest);
    }

    private int pollOnce(LoopQueue queue) {
        if (queue.unpollable) {
            return 0;
        }
        try {
            return queue.queue.poll(completions);
        } catch (NativeRdmaException failure) {
            queue.unpollable = true;
            breakQueue(queue, failure);
            return 0;
        }
    }

    /**
     * Gives a completion to its endpoint. A failure ends only that endpoint: the rest of the batch is off the queue and
     * has to reach its own.
     */
    private void dispatch(int i) {
        long id = completions.workRequestId(i);
        int kind = WorkRequestId.kind(id);
        LoopEndpoint endpoint;
        if (kind == WorkRequestId.SHARED_RECEIVE) {
            endpoint = sharing.get(completions.queuePairNumber(i));
        } else {
            int index = WorkRequestId.endpoint(id);
            endpoint = index < endpoints.length && generation(index) == WorkRequestId.generation(id)
                    ? endpoints[index]
                    : null;
        }
        int slot = WorkRequestId.slot(id);
        if (endpoint == null) {
            try {
                drop(id, kind, slot);
            } catch (RuntimeException | Error refused) {
                breakSharedReceives(refused);
            }
            return;
        }
        if (!endpoint.touch()) {
            if (touchedCount == touched.length) {
                touched = Arrays.copyOf(touched, 2 * touchedCount);
            }
            touched[touchedCount++] = endpoint;
        }
        try {
            complete(endpoint.reports(), kind, slot, i);
        } catch (RuntimeException | Error failure) {
            endpoint.drain(failure);
        }
    }

    private void drop(long id, int kind, int slot) {
        staleCompletions++;
        LOG.debug("Dropped completion {} of a closed connection, number {}", Long.toHexString(id), staleCompletions);
        VerbsSharedReceiveQueue shared = sharedReceives;
        if (kind == WorkRequestId.SHARED_RECEIVE && shared != null && shared.isOf(id)) {
            shared.postAgain(slot);
        }
    }

    private void complete(LoopEndpoint.Reports reports, int kind, int slot, int i) {
        if (kind == WorkRequestId.SEND) {
            if (completions.isSuccess(i)) {
                reports.onSendDone(slot);
            } else {
                reports.onSendFailed(slot, statusOf(completions.status(i)), completions.vendorError(i));
            }
        } else if (kind == WorkRequestId.FIRST_PART) {
            if (!completions.isSuccess(i)) {
                reports.onFirstPartFailed(slot, statusOf(completions.status(i)), completions.vendorError(i));
            }
        } else if (completions.isSuccess(i)) {
            reports.onReceiveDone(kind, slot, completions, i);
        } else {
            reports.onReceiveFailed(kind, slot, statusOf(completions.status(i)), completions.vendorError(i));
        }
    }

    @SuppressWarnings("NullAway") // the slot is not read again before it is set
    private void endBatch() {
        for (int i = 0; i < touchedCount; i++) {
            LoopEndpoint endpoint = touched[i];
            touched[i] = null;
            try {
                endpoint.onBatchEnd();
            } catch (RuntimeException | Error failure) {
                endpoint.drain(failure);
            }
        }
        touchedCount = 0;
    }

    static WorkStatus statusOf(CompletionStatus status) {
        return switch (status) {
            case SUCCESS -> WorkStatus.SUCCESS;
            case LOC_LEN_ERR -> WorkStatus.LOCAL_LENGTH_ERROR;
            case LOC_QP_OP_ERR -> WorkStatus.LOCAL_QUEUE_PAIR_OPERATION_ERROR;
            case LOC_PROT_ERR -> WorkStatus.LOCAL_PROTECTION_ERROR;
            case WR_FLUSH_ERR -> WorkStatus.FLUSHED;
            case MW_BIND_ERR -> WorkStatus.MEMORY_WINDOW_BIND_ERROR;
            case BAD_RESP_ERR -> WorkStatus.BAD_RESPONSE_ERROR;
            case LOC_ACCESS_ERR -> WorkStatus.LOCAL_ACCESS_ERROR;
            case REM_INV_REQ_ERR -> WorkStatus.REMOTE_INVALID_REQUEST_ERROR;
            case REM_ACCESS_ERR -> WorkStatus.REMOTE_ACCESS_ERROR;
            case REM_OP_ERR -> WorkStatus.REMOTE_OPERATION_ERROR;
            case RETRY_EXC_ERR -> WorkStatus.TRANSPORT_RETRY_EXCEEDED;
            case RNR_RETRY_EXC_ERR -> WorkStatus.RECEIVER_NOT_READY_RETRY_EXCEEDED;
            case LOC_EEC_OP_ERR,
                    LOC_RDD_VIOL_ERR,
                    REM_INV_RD_REQ_ERR,
                    REM_ABORT_ERR,
                    INV_EECN_ERR,
                    INV_EEC_STATE_ERR,
                    FATAL_ERR,
                    RESP_TIMEOUT_ERR,
                    GENERAL_ERR,
                    TM_ERR,
                    TM_RNDV_INCOMPLETE,
                    UNKNOWN -> WorkStatus.GENERAL_ERROR;
        };
    }

    // ---- what breaks

    /**
     * The device reports that a queue has failed: no completion comes from it any more, and polling does not show that.
     * Any thread.
     */
    void onQueueError(@Nullable VerbsObject source) {
        handler.execute(() -> {
            ConnectionException.Lost failure =
                    new ConnectionException.Lost("the device reported an error of " + source);
            for (LoopQueue queue : queues) {
                if (queue.queue == source) {
                    breakQueue(queue, failure);
                }
            }
            if (sharedReceives != null && sharedReceives.queue() == source) {
                breakSharedReceives(failure);
            }
        });
    }

    /** The shared receive queue has failed: its connections end, and the next one gets another queue. */
    private void breakSharedReceives(Throwable failure) {
        VerbsSharedReceiveQueue broken = sharedReceives;
        if (broken == null) {
            return;
        }
        sharedReceives = null;
        broken.fail();
        brokenSharedReceives.add(broken);
        LOG.error(
                "The shared receive queue of a loop on {} is broken; its connections are lost", device.name(), failure);
        for (LoopQueue queue : queues) {
            queue.isClosedToOthers |= queue.sharedEndpoints > 0;
        }
        for (LoopEndpoint endpoint : sharing.values()) {
            endpoint.onDeviceFailure("its shared receive queue is broken: " + failure.getMessage());
        }
        if (broken.users() == 0) {
            handler.execute(() -> closeBroken(broken));
        }
    }

    private void closeBroken(VerbsSharedReceiveQueue broken) {
        try {
            broken.close();
            brokenSharedReceives.remove(broken);
        } catch (NativeRdmaException | IllegalStateException stillUsed) {
            LOG.debug("A shared receive queue of {} is still in use", device.name(), stillUsed); // closed with the loop
        }
    }

    private void breakQueue(LoopQueue queue, RuntimeException failure) {
        if (queue.failure != null) {
            return;
        }
        queue.failure = failure;
        LOG.error("A completion queue of {} is broken; its connections are lost", device.name(), failure);
        for (LoopEndpoint endpoint : endpoints) {
            if (endpoint != null && endpoint.completesOn(queue)) {
                endpoint.onDeviceFailure(brokenBy(failure));
            }
        }
    }

    private static String brokenBy(RuntimeException failure) {
        return "its completion queue is broken: " + failure.getMessage();
    }

    /**
     * At the loop's end, or when the device is lost, when the endpoints are gone. A queue pair that the kernel still
     * holds keeps its queues; then it is tried again, on its connection loop, since this one may have ended.
     */
    void close() {
        if (sharedReceives != null) {
            sharedReceives.stop();
        }
        close(CLOSE_ATTEMPTS);
    }

    /**
     * Three minutes of attempts: the kernel holds the connects of siw to a host that does not answer for more than two.
     */
    private static final int CLOSE_ATTEMPTS = 360;

    private static final long CLOSE_RETRY_MILLIS = 500;

    private void close(int attempts) {
        try {
            if (sharedReceives != null) {
                sharedReceives.close();
            }
            brokenSharedReceives.forEach(VerbsSharedReceiveQueue::close);
            for (LoopQueue queue : queues) {
                queue.queue.close();
            }
            closeOwnDomain();
            channel.close();
            completions.close();
            device.remove(this);
        } catch (NativeRdmaException | IllegalStateException stillUsed) {
            if (attempts > 0) {
                LOG.debug("The queues of a loop on {} are still in use: {}", device.name(), stillUsed.getMessage());
                try {
                    device.connectionLoop()
                            .loop()
                            .schedule(() -> close(attempts - 1), CLOSE_RETRY_MILLIS, TimeUnit.MILLISECONDS);
                    return;
                } catch (Throwable notLater) {
                    stillUsed.addSuppressed(notLater);
                }
            }
            LOG.error("The queues of a loop on {} could not be destroyed", device.name(), stillUsed);
            device.remove(this);
        }
    }
}
