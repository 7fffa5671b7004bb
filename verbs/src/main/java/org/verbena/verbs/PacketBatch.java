package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.verbena.verbs.internal.Seam;

/** Work requests that the module {@code org.verbena.verbs.packet} posts. No other module can extend this class. */
public abstract non-sealed class PacketBatch extends PostBatch {
    /**
     * Makes the slots. The queue frees them when it is closed.
     *
     * @param seam shows that the module may do so
     * @param queue what is posted to
     * @param function C's function that posts
     * @param postFunction and its pointer
     * @param depthWrs how many work requests the queue holds
     * @param maxSges how many elements one may have
     * @param slotBytes the length of C's struct
     * @param nextOffset where it points to the next
     * @param sgListOffset where it points to its elements
     */
    protected PacketBatch(
            Seam seam,
            SharedReceiveQueue queue,
            String function,
            MemorySegment postFunction,
            int depthWrs,
            int maxSges,
            long slotBytes,
            long nextOffset,
            long sgListOffset) {
        super(queue, queue.domain(), function, postFunction, depthWrs, maxSges, slotBytes, nextOffset, sgListOffset, 0);
        Objects.requireNonNull(seam);
    }

    /**
     * Looks up a function of {@code verbs_context}.
     *
     * @param context of the device
     * @param function C's name of it
     * @param offset in {@code verbs_context}
     * @return the pointer
     * @throws VerbsException the provider does not have it
     */
    protected static MemorySegment operation(Context context, String function, long offset) {
        return context.extendedOperation(function, offset);
    }
}
