package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.verbena.verbs.ffm.IbvPd;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;

/**
 * What ties memory to queue pairs: a queue pair reaches the memory regions of its own domain only. Any thread.
 *
 * <p>Source: ibv_alloc_pd(3)
 */
public final class ProtectionDomain extends VerbsObject {
    private final Context context;
    private final boolean owned;

    ProtectionDomain(long address, Context context, boolean owned) {
        super(address, context);
        this.context = context;
        this.owned = owned;
        AbiCheck.expect("ibv_pd.context", context.nativeAddress(), Pointers.readLong(address + IbvPd.CONTEXT));
    }

    /**
     * Takes a domain that another library allocated, such as librdmacm's {@code cm_id->pd}. Closing it here leaves it allocated there.
     *
     * @param context what it lies on
     * @param ibvPd address of an {@code ibv_pd}; it stays valid until this is closed
     * @return the domain
     */
    public static ProtectionDomain wrap(Context context, long ibvPd) {
        hold(context);
        try {
            return new ProtectionDomain(ibvPd, context, false);
        } finally {
            release(context);
        }
    }

    /**
     * What it lies on.
     *
     * @return the context
     */
    public Context context() {
        return context;
    }

    /**
     * Whether memory registered in one of two domains can be used by queue pairs of the other: they are the same C object, wrapped twice.
     *
     * @param other a domain
     * @return true if so
     */
    boolean sharesMemoryWith(ProtectionDomain other) {
        return nativeAddress() == other.nativeAddress();
    }

    /**
     * Makes memory known to the device. The pages are pinned for as long as the region is open, so register large pieces and keep them.
     *
     * @param segment native memory; it must stay alive until the region is closed, and that until no work request uses it
     * @param access what may be done with it; local reads always may
     * @return the region; the caller closes it
     * @throws IllegalArgumentException heap memory, an empty segment, or REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE
     * @throws VerbsException the device refused; ENOMEM and EPERM mean the locked-memory limit
     */
    public MemoryRegion registerMemory(MemorySegment segment, Set<AccessFlag> access) {
        return MemoryRegion.register(this, segment, access);
    }

    /**
     * Creates a queue pair.
     *
     * @param options its type, queues and sizes
     * @return the queue pair in RESET; the caller closes it
     * @throws VerbsException the device refused
     */
    public QueuePair createQueuePair(QueuePairOptions options) {
        return QueuePair.create(this, options);
    }

    /**
     * Creates a shared receive queue.
     *
     * @param depthWrs receives it holds at least, 1 or more
     * @param maxSges scatter/gather elements in one of them, 1 or more
     * @return the queue; the caller closes it
     * @throws VerbsException the device refused
     */
    public SharedReceiveQueue createSharedReceiveQueue(int depthWrs, int maxSges) {
        return SharedReceiveQueue.create(this, depthWrs, maxSges);
    }

    @Override
    void destroy(long closing) {
        if (owned) {
            Calls.check("ibv_dealloc_pd", context.device().name(), LibIbverbs.deallocPd(closing));
        }
    }

    @Override
    public String toString() {
        return "ProtectionDomain of " + context.device().name();
    }
}
