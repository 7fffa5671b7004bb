package org.verbena.transport.verbs;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ReceiveQueue;

/** The shared receive queue of one loop on one device. Not thread-safe; confined to the loop's thread. */
final class VerbsSharedReceiveQueue implements SharedReceiveQueue {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsSharedReceiveQueue.class);

    /**
     * A receive that may be posted, with what it scatters to for the case that it has to be posted once more. Receives
     * complete in any order, as messages come from many peers.
     */
    private static final class Slot extends WorkSlot {
        private final long[] addresses;
        private final int[] lengths;
        private boolean isOut;

        Slot(int maxSges) {
            addresses = new long[maxSges];
            lengths = new int[maxSges];
        }

        void set(ScatterGatherList buffers) {
            for (int i = 0; i < buffers.count(); i++) {
                addresses[i] = buffers.address(i);
                lengths[i] = buffers.length(i);
            }
        }

        /** Adds what it scatters to. */
        void addTo(ScatterGatherList list) {
            for (int i = 0; i < regionCount(); i++) {
                list.addHeld(region(i), addresses[i] - region(i).address(), lengths[i]);
            }
        }
    }

    private final VerbsDevice device;
    private final org.verbena.verbs.SharedReceiveQueue queue;
    private final int maxSges;
    private final Slot[] slots;

    /** Slots that nothing is posted in. */
    private final int[] freeSlots;

    /** For {@link #postAgain}. */
    private final ScatterGatherList again;

    /** In the place of the generation of its receives' ids: a loop has another queue when this one fails. */
    private final int number;

    private int freeCount;

    /** Endpoints that hold a queue pair on it, or are about to. */
    private int users;

    private boolean isBroken;
    private @Nullable Object attachment;
    private boolean closed;

    VerbsSharedReceiveQueue(VerbsDevice device, int number, int depth, int maxSges) {
        this.device = device;
        this.number = number;
        this.maxSges = maxSges;
        queue = device.memoryDomain().protectionDomain().createSharedReceiveQueue(depth, maxSges);
        again = new ScatterGatherList(Math.max(1, maxSges));
        slots = new Slot[depth];
        Arrays.setAll(slots, slot -> new Slot(maxSges));
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

    private long id(int slot) {
        return WorkRequestId.of(0, number, WorkRequestId.SHARED_RECEIVE, slot);
    }

    /** Whether the receive of an id is one of this queue's. */
    boolean isOf(long id) {
        return WorkRequestId.generation(id) == (number & 0xffff);
    }

    void addUser() {
        users++;
    }

    /** Returns how many are left. */
    int removeUser() {
        return --users;
    }

    int users() {
        return users;
    }

    /** The device has failed it: takes no receives any more, and no endpoints. */
    void fail() {
        isBroken = true;
        closed = true;
    }

    boolean isBroken() {
        return isBroken;
    }

    @Override
    public boolean postReceive(long workId, ScatterGatherList buffers) {
        PostChecks.receive(buffers, maxSges, device.memoryDomain());
        if (freeCount == 0 || closed) {
            return false;
        }
        ReceiveQueue receives = queue.receiveQueue();
        if (receives.isFull()) {
            flush();
        }
        int index = freeSlots[freeCount - 1];
        Slot slot = slots[index];
        slot.hold(buffers);
        try {
            receives.receive(id(index));
            device.addSges(receives, buffers);
        } catch (RuntimeException refused) {
            slot.release();
            throw refused;
        }
        slot.workId = workId;
        slot.set(buffers);
        slot.isOut = true;
        freeCount--;
        return true;
    }

    /**
     * Posts a receive again that was consumed for an endpoint that is gone: no handler can be notified, and the
     * connections that it was promised to still need it. What arrived is dropped.
     */
    void postAgain(int slot) {
        if (closed || !isOut(slot)) {
            return;
        }
        slots[slot].addTo(again.clear());
        ReceiveQueue receives = queue.receiveQueue();
        if (receives.isFull()) {
            flush();
        }
        receives.receive(id(slot));
        device.addSges(receives, again);
        flush();
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

    /** Whether a slot's receive is out: what completes should be. */
    boolean isOut(int slot) {
        return slot < slots.length && slots[slot].isOut;
    }

    /** Takes a receive that has completed off the queue, and gives its work id. */
    long complete(int slot) {
        Slot done = slots[slot];
        done.isOut = false;
        done.release();
        freeSlots[freeCount++] = slot;
        return done.workId;
    }

    @Override
    public int depth() {
        return slots.length;
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
        for (Slot slot : slots) {
            slot.release();
        }
        if (attachment instanceof AutoCloseable owner) {
            try {
                owner.close();
            } catch (Exception failure) {
                LOG.warn("The owner of a shared receive queue's buffers could not be closed", failure);
            }
        }
    }
}
