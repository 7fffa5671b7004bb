package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ReceiveQueue;

/** The shared receive queue of one loop on one device. The loop's thread alone. */
final class VerbsSharedReceiveQueue implements SharedReceiveQueue {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsSharedReceiveQueue.class);

    private final VerbsDevice device;
    private final org.verbena.verbs.SharedReceiveQueue queue;
    private final int depth;
    private final int maxSges;

    /** By slot. */
    private final long[] workIds;

    private final HeldRegions held;

    /** Slots that nothing is posted in; receives complete in any order, as messages come from many peers. */
    private final int[] freeSlots;

    private int freeCount;
    private @Nullable Object attachment;
    private boolean closed;

    VerbsSharedReceiveQueue(VerbsDevice device, int depth, int maxSges) {
        this.device = device;
        this.depth = depth;
        this.maxSges = maxSges;
        queue = device.memoryDomain().protectionDomain().createSharedReceiveQueue(depth, maxSges);
        workIds = new long[depth];
        held = new HeldRegions(depth, maxSges);
        freeSlots = new int[depth];
        for (int slot = depth - 1; slot >= 0; slot--) {
            freeSlots[freeCount++] = slot;
        }
    }

    org.verbena.verbs.SharedReceiveQueue queue() {
        return queue;
    }

    int maxSges() {
        return maxSges;
    }

    @Override
    public boolean postReceive(long workId, ScatterGatherList buffers) {
        PostChecks.receive(buffers, maxSges);
        VerbsMemoryDomain.checkOwn(buffers);
        if (freeCount == 0 || closed) {
            return false;
        }
        ReceiveQueue receives = queue.receiveQueue();
        if (receives.isFull()) {
            flush();
        }
        int slot = freeSlots[freeCount - 1];
        held.hold(slot, buffers);
        try {
            receives.receive(WorkRequestId.of(0, 0, WorkRequestId.SHARED_RECEIVE, slot));
            device.addPieces(receives, buffers);
        } catch (RuntimeException refused) {
            held.release(slot);
            throw refused;
        }
        workIds[slot] = workId;
        freeCount--;
        return true;
    }

    @Override
    public void flush() {
        if (!closed) {
            try {
                queue.receiveQueue().flush();
            } catch (NativeRdmaException refused) {
                throw NativeFailures.of(refused);
            }
        }
    }

    /** Takes a receive that has completed off the queue, and gives its work id. */
    long complete(int slot) {
        held.release(slot);
        freeSlots[freeCount++] = slot;
        return workIds[slot];
    }

    @Override
    public int depth() {
        return depth;
    }

    @Override
    public MemoryDomain memoryDomain() {
        return device.memoryDomain();
    }

    @Override
    public @Nullable Object attachment() {
        return attachment;
    }

    @Override
    public void attach(Object object) {
        attachment = object;
    }

    /** At the loop's end: takes no receives any more. */
    void stop() {
        closed = true;
    }

    /** Gives up what is posted, then closes the owner of the buffers. Idempotent. */
    void close() {
        if (!queue.isOpen()) {
            return;
        }
        queue.close();
        held.releaseAll();
        if (attachment instanceof AutoCloseable owner) {
            try {
                owner.close();
            } catch (Exception failure) {
                LOG.warn("The owner of a shared receive queue's buffers could not be closed", failure);
            }
        }
    }
}
