package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
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

    private final Queue queue;
    private final MessageBuffers buffers;
    private final int bufferBytes;
    private final ScatterGatherList list = new ScatterGatherList(1);
    private final @Nullable ByteBuf[] slots;
    private final int[] freeSlots;
    private int free;
    private final ByteBuf[] spares;
    private int spareCount;
    private boolean starved;
    private boolean over;

    Receives(Queue queue, MessageBuffers buffers, int depth, int bufferBytes) {
        this.queue = queue;
        this.buffers = buffers;
        this.bufferBytes = bufferBytes;
        slots = new ByteBuf[depth];
        spares = new ByteBuf[depth];
        freeSlots = new int[depth];
        for (int i = 0; i < depth; i++) {
            freeSlots[i] = depth - 1 - i;
        }
        free = depth;
    }

    int depth() {
        return slots.length;
    }

    int bufferBytes() {
        return bufferBytes;
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
        while (count < most && free > 0) {
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
        if (over || spareCount == spares.length) {
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
