package org.verbena.transport.verbs;

import java.util.Set;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.MemoryWindow;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.ffm.Siw;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.work.SendFlags;

/**
 * Posts an endpoint's work requests and handles their completions, in a ring of slots. Not thread-safe; confined to the
 * loop's thread.
 *
 * <p>A completion of a slot completes all slots before it as well (those were not signalled), so work completes once
 * and in order whatever is signalled; {@link SendStaging} says what is. Not so over iWARP, where siw completes a write while a read before it is still
 * under way, and a failure before the work it follows: there each work request is signalled, and its outcome waits in
 * its slot until those before it are known. On siw a read of few bytes on two of the peer's pages is posted in two
 * parts ({@link ShortReads}); the slot is done with the second.
 */
final class SendPath {
    /** Receives the outcomes of work requests. */
    interface Events extends SendStaging.Refusals {
        /**
         * A work request is done.
         *
         * @param workId as posted
         * @param status how it ended
         * @param lengthBytes what it moved; 0 unless it succeeded
         */
        void onSendCompleted(long workId, WorkStatus status, int lengthBytes);
    }

    /** Nobody waits for what has both flags: neither its poster, nor its memory. */
    private static final int NOT_AWAITED = WorkRequest.UNSIGNALLED | WorkRequest.INLINE;

    private final Events events;
    private final SendRing ring;
    private final SendStaging staging;

    /** Over iWARP, see above. */
    private boolean completesInAnyOrder;

    /** On siw, see above. */
    private boolean splitsShortReads;

    /** The slot whose first part failed by itself; the second is flushed then. */
    private int failedFirstPart = -1;

    private WorkStatus firstPartStatus = WorkStatus.FLUSHED;

    SendPath(int depth, int maxSges, Events events) {
        this.events = events;
        ring = new SendRing(depth, maxSges);
        staging = new SendStaging(ring, true, events);
    }

    /**
     * The queue is there.
     *
     * @param made the queue
     * @param device the device
     * @param depth how many may be out on this device
     * @param endpointIndex of the ids of its work requests
     * @param endpointGeneration and this
     */
    void prepared(SendQueue made, VerbsDevice device, int depth, int endpointIndex, int endpointGeneration) {
        ring.limit(depth);
        staging.prepared(made, device.isIwarp(), device.flushesOnlyWhatIsNotDone(), endpointIndex, endpointGeneration);
        completesInAnyOrder = device.isIwarp();
        splitsShortReads = device.isSiw();
    }

    /** How many are out. */
    int count() {
        return ring.count();
    }

    int free() {
        return ring.depth() - ring.count();
    }

    boolean isFull() {
        return ring.isFull();
    }

    /** Whether all that are out were never given to the device. */
    boolean areAllBack() {
        return staging.areAllBack();
    }

    /** Whether a slot is out. */
    boolean isOut(int slot) {
        return ring.position(slot) < ring.count();
    }

    String describe(int slot) {
        return ring.describe(slot);
    }

    /** The oldest outstanding work request. */
    String describeOldest() {
        return ring.describe(ring.head());
    }

    /** Whether some are out of which a completion would have come if they were done. */
    boolean isCompletionDue() {
        return ring.count() > 0 && (completesInAnyOrder || staging.isSignalledOut());
    }

    /** A batch of completions was handled. */
    void onBatchEnd() {
        staging.batchEnded();
    }

    /**
     * Whether nothing is out; if something is, its completion comes without more being posted.
     *
     * @return false while something is out
     */
    boolean awaitAll() {
        if (ring.count() > 0) {
            staging.awaitAll();
        }
        return ring.count() == 0;
    }

    // ---- posting

    /**
     * Stages a work request.
     *
     * @param work checked, and there is a free slot for it
     * @param can what the endpoint can do
     * @return false if the device refused what had been staged before: {@link Events#onSendsRefused} has been called
     * @throws IllegalStateException memory of it is closed; nothing is staged
     */
    boolean post(WorkRequest work, EndpointCapabilities can) {
        SendQueue queue = staging.queue();
        boolean inTwoParts = splitsShortReads && ShortReads.isOne(work);
        if ((queue.isFull() || inTwoParts) && !flush()) {
            return false;
        }
        ring.holdForNext(work.buffers());
        try {
            if (inTwoParts) {
                ShortReads.stage(
                        queue,
                        work,
                        staging.id(WorkRequestId.FIRST_PART, ring.next()),
                        staging.id(WorkRequestId.SEND, ring.next()));
            } else {
                stage(queue, work, can);
            }
        } catch (RuntimeException refused) {
            ring.releaseNext();
            throw refused;
        }
        if ((work.flags() & WorkRequest.INLINE) != 0) {
            ring.releaseNext();
        }
        ring.take(work);
        if (inTwoParts) {
            // Elsewhere each slot stages one work request. A refusal has been reported, and the slot comes back.
            flush();
        }
        return true;
    }

    /**
     * Binds a memory window, at once, behind what is staged: its completion has {@link WorkRequestId#BINDING} in the
     * place of a slot. If the device refuses it, {@link Events#onSendsRefused} is called.
     *
     * @param memory with a window
     */
    void bind(ConnectionWindows.Bound memory) {
        if (!flush()) {
            return; // it is ending, which releases the binding
        }
        int errno =
                tryBind(memory.window(), memory.remoteKey(), memory.region(), memory.lengthBytes(), memory.rights());
        if (errno != 0) {
            events.onSendsRefused(errno, ring.count(), ring.count());
        }
    }

    /**
     * As {@link #bind}, but nothing is staged, and the caller learns of a refusal.
     *
     * @return errno; 0 if it was posted
     */
    int tryBind(MemoryWindow window, int key, MemoryRegion region, long lengthBytes, Set<AccessFlag> rights) {
        SendQueue queue = staging.queue();
        long wrId = staging.id(WorkRequestId.SEND, WorkRequestId.BINDING);
        queue.bindWindow(wrId, SendFlags.SIGNALED, window, key, region, 0, lengthBytes, rights);
        int errno = queue.tryFlush();
        if (errno != 0) {
            queue.discard();
        }
        return errno;
    }

    private void stage(SendQueue queue, WorkRequest work, EndpointCapabilities can) {
        long wrId = staging.id(WorkRequestId.SEND, ring.next());
        ScatterGatherList sges = work.buffers();
        int flags = 0;
        if ((work.flags() & WorkRequest.FENCE) != 0) {
            flags |= SendFlags.FENCE;
        }
        if ((work.flags() & WorkRequest.SOLICITED) != 0) {
            flags |= SendFlags.SOLICITED;
        }
        boolean signalled = staging.signalsNext();
        if (signalled) {
            flags |= SendFlags.SIGNALED;
        }
        long address = work.remoteAddress();
        int key = work.remoteKey();
        switch (work.opcode()) {
            case SEND -> queue.send(wrId, flags | inline(work, can));
            case SEND_WITH_IMMEDIATE -> queue.sendWithImmediate(wrId, flags | inline(work, can), work.immediateData());
            case SEND_WITH_INVALIDATE -> queue.sendWithInvalidate(wrId, flags | inline(work, can), key);
            case WRITE -> queue.write(wrId, flags | inline(work, can), address, key);
            case WRITE_WITH_IMMEDIATE ->
                queue.writeWithImmediate(wrId, flags | inline(work, can), address, key, work.immediateData());
            case READ -> queue.read(wrId, flags, address, key);
            case COMPARE_AND_SWAP ->
                queue.compareAndSwap(
                        wrId,
                        flags,
                        address,
                        key,
                        work.compareOrAdd(),
                        work.swap(),
                        VerbsMemoryDomain.regionOf(sges.region(0)),
                        PostChecks.offset(sges, 0));
            case FETCH_AND_ADD ->
                queue.fetchAndAdd(
                        wrId,
                        flags,
                        address,
                        key,
                        work.compareOrAdd(),
                        VerbsMemoryDomain.regionOf(sges.region(0)),
                        PostChecks.offset(sges, 0));
        }
        if (work.opcode() != WorkRequest.Opcode.COMPARE_AND_SWAP && work.opcode() != WorkRequest.Opcode.FETCH_AND_ADD) {
            addSges(queue, sges, (work.flags() & WorkRequest.INLINE) != 0);
        }
        staging.staged(signalled, (work.flags() & NOT_AWAITED) != NOT_AWAITED);
    }

    /**
     * Adds SGEs that are checked: the list has checked their bounds, {@link PostChecks} domain and rights, and the ring
     * that they are open.
     */
    private static void addSges(SendQueue queue, ScatterGatherList sges, boolean copied) {
        for (int i = 0; i < sges.count(); i++) {
            RegisteredMemory region = sges.region(i);
            if (copied) {
                queue.inline(region.segment(), PostChecks.offset(sges, i), sges.length(i));
            } else {
                queue.uncheckedSge(sges.address(i), sges.length(i), region.localKey());
            }
        }
    }

    /**
     * A small payload goes into the work request itself, which saves the adapter a read of memory. Not behind a fence,
     * since the reads before it may still have to write the payload; but siw sends small messages correctly only if
     * they are inline.
     */
    private int inline(WorkRequest work, EndpointCapabilities can) {
        long bytes = work.buffers().totalBytes();
        boolean mayChange = (work.flags() & (WorkRequest.FENCE | WorkRequest.INLINE)) == WorkRequest.FENCE;
        boolean must = splitsShortReads && bytes <= Siw.SHORT_BYTES;
        return bytes <= can.maxInlineBytes() && (must || !mayChange) ? SendFlags.INLINE : 0;
    }

    /**
     * Gives what is staged to the device.
     *
     * @return false if it refused: {@link Events#onSendsRefused} has been called
     */
    boolean flush() {
        return staging.flush();
    }

    /** The connection ends: what is staged stays out, and {@link #completeRest} completes it; the rest comes back. */
    void end() {
        staging.end();
    }

    // ---- completions of slots that are out

    /** A slot was done; where completions come in order, all before it as well. */
    void onDone(int slot) {
        staging.signalledDone();
        if (completesInAnyOrder) {
            ring.keepOutcome(slot, WorkStatus.SUCCESS);
            completeKnown();
            return;
        }
        completeUpTo(slot);
        complete(WorkStatus.SUCCESS);
    }

    /**
     * A write of no bytes has come back: those before it that are still out were done, since what fails or is flushed
     * has a completion of its own.
     *
     * @param slot {@link WorkRequestId#ASKING} or {@link WorkRequestId#LAST_ASKING}
     */
    void onAsked(int slot) {
        long end = staging.askedEnd(slot);
        while (ring.begin() < end) {
            complete(WorkStatus.SUCCESS);
        }
    }

    /**
     * A slot failed; where completions come in order, those before it, which have no completion of their own, were
     * done.
     */
    void onFailed(int slot, WorkStatus status) {
        if (completesInAnyOrder) {
            ring.keepOutcome(slot, status);
            completeKnown();
            return;
        }
        completeUpTo(slot);
        complete(status);
    }

    /** The first part of a slot failed; the second is still to come, flushed. */
    void onFirstPartFailed(int slot, WorkStatus status) {
        if (status != WorkStatus.FLUSHED) {
            failedFirstPart = slot;
            firstPartStatus = status;
        }
    }

    private void completeUpTo(int slot) {
        for (int i = ring.position(slot); i > 0; i--) {
            complete(WorkStatus.SUCCESS);
        }
    }

    private void completeKnown() {
        WorkStatus outcome;
        while (ring.count() > 0 && (outcome = ring.headOutcome()) != null) {
            complete(outcome);
        }
    }

    private void complete(WorkStatus outcome) {
        int slot = ring.head();
        WorkStatus status = slot == failedFirstPart ? firstPartStatus : outcome;
        ring.free();
        events.onSendCompleted(ring.workId(slot), status, status == WorkStatus.SUCCESS ? ring.lengthBytes(slot) : 0);
    }

    /**
     * Completes what is out still: nothing comes any more.
     *
     * @param isQueuePairGone false if the device may still use the memory, which then stays registered for ever
     */
    void completeRest(boolean isQueuePairGone) {
        while (ring.count() > 0) {
            if (!isQueuePairGone) {
                ring.forgetHead();
            }
            WorkStatus outcome = ring.headOutcome();
            complete(outcome == null ? WorkStatus.FLUSHED : outcome);
        }
    }
}
