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
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.work.SendFlags;

/**
 * Posts an endpoint's work requests and handles their completions, in a ring of slots. Not thread-safe; confined to the
 * loop's thread.
 *
 * <p>A completion of a slot completes all slots before it as well (those were not signalled), so work completes once
 * and in order whatever is signalled; {@link SendStaging} says what is. {@link SiwSendPath} has its place on siw.
 */
class SendPath {
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

    /** What a library that joins a send with the write before it does not look at. */
    private static final int LOST_IF_JOINED = WorkRequest.FENCE | WorkRequest.SOLICITED;

    /** Nobody waits for what has both flags: neither its poster, nor its memory. */
    private static final int NOT_AWAITED = WorkRequest.UNSIGNALLED | WorkRequest.INLINE;

    private final Events events;
    final WorkRing<SendSlot> ring;
    final SendStaging staging;

    /** An inline write is the last of its chain, some sends the first: {@code DriverFamily#joinsWriteWithSend}. */
    private boolean joinsWrites;

    SendPath(int depth, Events events) {
        this.events = events;
        ring = new WorkRing<>(depth, SendSlot::new);
        staging = new SendStaging(ring, events);
    }

    /** The way on a device, on which so many may be out. */
    static SendPath on(VerbsDevice device, int depth, Events events) {
        return device.isSiw() ? new SiwSendPath(depth, events) : new SendPath(depth, events);
    }

    /**
     * The queue is there.
     *
     * @param made the queue
     * @param device the device
     * @param asks whether the peer takes writes of no bytes
     * @param endpointIndex of the ids of its work requests
     * @param endpointGeneration and this
     */
    void prepared(SendQueue made, VerbsDevice device, boolean asks, int endpointIndex, int endpointGeneration) {
        joinsWrites = device.family().joinsWriteWithSend();
        staging.prepared(
                made, false, asks, device.family().flushesOnlyWhatIsNotDone(), endpointIndex, endpointGeneration);
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
        return ring.slot(slot).describe();
    }

    /** The oldest outstanding work request. */
    String describeOldest() {
        return describe(ring.head());
    }

    /** Whether some are out of which a completion would have come if they were done. */
    boolean isCompletionDue() {
        return staging.isSignalledOut();
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
        boolean begins = queue.isFull() || (joinsWrites && (work.flags() & LOST_IF_JOINED) != 0);
        if (begins && !flush()) {
            return false;
        }
        SendSlot slot = ring.slot(ring.next());
        slot.hold(work.buffers());
        int inline = isInline(work, can) ? SendFlags.INLINE : 0;
        try {
            stage(queue, work, inline);
        } catch (RuntimeException refused) {
            slot.release();
            throw refused;
        }
        if ((work.flags() & WorkRequest.INLINE) != 0) {
            slot.release();
        }
        slot.set(work);
        ring.take();
        if (joinsWrites && inline != 0 && work.opcode() == WorkRequest.Opcode.WRITE) {
            flush(); // a refusal has been reported, and the slot comes back
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
        int errno = tryBind(
                memory.window(),
                memory.remoteKey(),
                memory.region(),
                memory.offsetBytes(),
                memory.lengthBytes(),
                memory.rights());
        if (errno != 0) {
            events.onSendsRefused(errno, ring.count(), ring.count());
        }
    }

    /**
     * Ends what {@link #bind} has begun, likewise: the window can be bound again when this is complete.
     *
     * @param memory whose window is bound
     */
    void invalidate(ConnectionWindows.Bound memory) {
        if (!flush()) {
            return; // it is ending, which releases the memory
        }
        SendQueue queue = staging.queue();
        queue.localInvalidate(ownId(), SendFlags.SIGNALED, memory.remoteKey());
        int errno = tryFlush(queue);
        if (errno != 0) {
            events.onSendsRefused(errno, ring.count(), ring.count());
        }
    }

    /**
     * As {@link #bind}, but nothing is staged, and the caller learns of a refusal.
     *
     * @return errno; 0 if it was posted
     */
    int tryBind(
            MemoryWindow window,
            int key,
            MemoryRegion region,
            long offsetBytes,
            long lengthBytes,
            Set<AccessFlag> rights) {
        SendQueue queue = staging.queue();
        queue.bindWindow(ownId(), SendFlags.SIGNALED, window, key, region, offsetBytes, lengthBytes, rights);
        int errno = tryFlush(queue);
        if (errno == 0) {
            window.rebound(key);
        }
        return errno;
    }

    private long ownId() {
        return staging.id(WorkRequestId.SEND, WorkRequestId.BINDING);
    }

    private static int tryFlush(SendQueue queue) {
        int errno = queue.tryFlush();
        if (errno != 0) {
            queue.discard();
        }
        return errno;
    }

    private void stage(SendQueue queue, WorkRequest work, int inline) {
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
        boolean isAtomic = false;
        switch (work.opcode()) {
            case SEND -> queue.send(wrId, flags | inline);
            case SEND_WITH_IMMEDIATE -> queue.sendWithImmediate(wrId, flags | inline, work.immediateData());
            case SEND_WITH_INVALIDATE -> queue.sendWithInvalidate(wrId, flags | inline, key);
            case WRITE -> queue.write(wrId, flags | inline, address, key);
            case WRITE_WITH_IMMEDIATE ->
                queue.writeWithImmediate(wrId, flags | inline, address, key, work.immediateData());
            case READ -> queue.read(wrId, flags, address, key);
            case COMPARE_AND_SWAP -> {
                isAtomic = true;
                queue.compareAndSwap(
                        wrId,
                        flags,
                        address,
                        key,
                        work.compareOrAdd(),
                        work.swap(),
                        VerbsMemoryDomain.regionOf(sges.region(0)),
                        PostChecks.offset(sges, 0));
            }
            case FETCH_AND_ADD -> {
                isAtomic = true;
                queue.fetchAndAdd(
                        wrId,
                        flags,
                        address,
                        key,
                        work.compareOrAdd(),
                        VerbsMemoryDomain.regionOf(sges.region(0)),
                        PostChecks.offset(sges, 0));
            }
        }
        if (!isAtomic) {
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
     * since the reads before it may still have to write the payload.
     */
    boolean isInline(WorkRequest work, EndpointCapabilities can) {
        return work.buffers().totalBytes() <= can.maxInlineBytes()
                && (work.flags() & (WorkRequest.FENCE | WorkRequest.INLINE)) != WorkRequest.FENCE;
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

    /** A slot was done, and all before it. */
    void onDone(int slot) {
        staging.signalledDone();
        completeUpTo(slot, WorkStatus.SUCCESS);
    }

    /** A slot failed; those before it, which have no completion of their own, were done. */
    void onFailed(int slot, WorkStatus status) {
        completeUpTo(slot, status);
    }

    private void completeUpTo(int slot, WorkStatus status) {
        for (int i = ring.position(slot); i > 0; i--) {
            complete(WorkStatus.SUCCESS);
        }
        complete(status);
    }

    /** The first part of a slot failed, where work is posted in parts. */
    void onFirstPartFailed(int slot, WorkStatus status) {
        throw new IllegalStateException("slot " + slot + " was not posted in parts, and one failed: " + status);
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

    /** The head's slot is done, or is not to be any more. */
    void complete(WorkStatus status) {
        SendSlot done = ring.free();
        events.onSendCompleted(done.workId, status, status == WorkStatus.SUCCESS ? done.lengthBytes() : 0);
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
            complete(WorkStatus.FLUSHED);
        }
    }
}
