package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * The buffers behind posted receives, of one endpoint or of a shared receive queue. A work id is the number of a slot;
 * buffers that were not filled are kept as spares and posted first, so that a control frame's receive never waits for
 * memory.
 */
public final class Receives {

    /** Where receives go: an endpoint or a shared receive queue. */
    @FunctionalInterface
    interface Queue {
        boolean postReceive(long workId, ScatterGatherList buffers);
    }

    /** Slots at first: connections that were never busy need no more. */
    private static final int FIRST_SLOTS = 16;

    private final Queue queue;
    private final MessageBuffers buffers;
    private final int depth;
    private int bufferBytes;
    private final ScatterGatherList list = new ScatterGatherList(1);
    private @Nullable ByteBuf[] slots = new ByteBuf[0];
    private int[] freeSlots = new int[0];
    private int free;
    private ByteBuf[] spares = new ByteBuf[0];
    private int spareCount;
    private boolean starved;
    private boolean over;

    /** How many were ever posted, modulo 2^32. */
    private int number;

    Receives(Queue queue, MessageBuffers buffers, int depth, int bufferBytes) {
        this.queue = queue;
        this.buffers = buffers;
        this.bufferBytes = bufferBytes;
        this.depth = depth;
        addSlots(Math.min(FIRST_SLOTS, depth));
    }

    private void addSlots(int more) {
        int before = slots.length;
        int now = before + more;
        slots = Arrays.copyOf(slots, now);
        spares = Arrays.copyOf(spares, now);
        freeSlots = Arrays.copyOf(freeSlots, now);
        for (int slot = now - 1; slot >= before; slot--) {
            freeSlots[free++] = slot;
        }
    }

    int depth() {
        return depth;
    }

    int bufferBytes() {
        return bufferBytes;
    }

    /** The number of the receive that is posted next, from 0 on: devices use them in this order. */
    int nextNumber() {
        return number;
    }

    /** From now on receives have so many bytes, more than before. */
    void grow(int bytes) {
        bufferBytes = bytes;
        while (spareCount > 0) {
            takeSpare().release();
        }
    }

    int posted() {
        return slots.length - free;
    }

    /** Whether the last attempt to post found no memory. */
    boolean starved() {
        return starved;
    }

    /**
     * Posts receives.
     *
     * @param most how many
     * @return how many were
     */
    int post(int most) {
        starved = false;
        int count = 0;
        while (count < most && posted() < depth) {
            if (free == 0) {
                addSlots(Math.min(slots.length, depth - slots.length));
            }
            ByteBuf buffer = spareCount > 0 ? takeSpare() : buffers.tryAllocateReceive(bufferBytes);
            if (buffer == null) {
                starved = true;
                break;
            }
            list.clear();
            if (buffers.gather(buffer, 0, bufferBytes, 1, list) != bufferBytes) {
                buffer.release();
                throw new IllegalStateException("a receive buffer of " + bufferBytes
                        + " bytes is not one piece of memory registered with this device: " + buffer);
            }
            int slot = freeSlots[free - 1];
            if (!queue.postReceive(slot, list)) {
                spare(buffer);
                break;
            }
            free--;
            number++;
            slots[slot] = buffer;
            count++;
        }
        list.clear();
        return count;
    }

    /**
     * A receive has completed.
     *
     * @param workId its slot
     * @return its buffer, owned by the caller; null if no such receive is posted
     */
    @Nullable ByteBuf take(long workId) {
        if (workId < 0 || workId >= slots.length) {
            return null;
        }
        ByteBuf buffer = slots[(int) workId];
        if (buffer != null) {
            slots[(int) workId] = null;
            freeSlots[free++] = (int) workId;
        }
        return buffer;
    }

    /** Returns a buffer whose content is not needed, for the next receive. */
    void spare(ByteBuf buffer) {
        if (over || spareCount == spares.length || buffer.capacity() < bufferBytes) {
            buffer.release();
        } else {
            spares[spareCount++] = buffer;
        }
    }

    @SuppressWarnings("NullAway") // an unused element is never read
    private ByteBuf takeSpare() {
        ByteBuf buffer = spares[--spareCount];
        spares[spareCount] = null;
        return buffer;
    }

    /** Releases everything; nothing is posted or kept any more. */
    void release() {
        over = true;
        while (spareCount > 0) {
            takeSpare().release();
        }
        for (int i = 0; i < slots.length; i++) {
            ByteBuf buffer = take(i);
            if (buffer != null) {
                buffer.release();
            }
        }
    }
}
