package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvSge;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.NativeHeap;
import org.verbena.verbs.memory.AccessFlag;

/**
 * Work requests on their way to the device: native slots, formatted and linked once, that are filled and then posted
 * with one call per flush. One thread at a time; nothing allocates unless it throws.
 *
 * <pre>{@code
 *   slot 0 -> slot 1 -> slot 2 -> ...           each with its SGEs behind all slots
 *   ^ head               ^ tail
 *
 *   Head to tail is staged. A flush cuts the link at the tail and posts from the head.
 * }</pre>
 *
 * <p>When a flush returns, the device has copied what it accepted. What it refuses stays staged, from the refused one
 * on: flush again after completions, or {@link #discard()}.
 */
public abstract sealed class PostBatch permits SendQueue, ReceiveQueue, PacketBatch {
    /**
     * The largest number of work requests between two flushes. A flush costs one call however many there are; UCX and
     * others find little to gain beyond this, and each connection pays for the slots.
     */
    static final int MAX_STAGED_WRS = 64;

    /** What the work requests are posted to. */
    protected final VerbsObject owner;

    private final ProtectionDomain domain;
    private final String function;
    private final MemorySegment postFunction;
    private final int capacityWrs;
    private final int maxSges;
    private final boolean passesEmptySges;
    private final long slotBytes;
    private final long nextOffset;

    /** Slots, then SGEs, then what subclasses need, then the pointer through which C names a refused work request. */
    protected final MemorySegment memory;

    private final long base;
    private final long sgesAt;
    private final long refusedAt;

    private int head;
    private int tail;

    /** Where the work request being filled is, or NONE. */
    private long current = NONE;

    private int sges;

    static final long NONE = -1;

    PostBatch(
            VerbsObject owner,
            ProtectionDomain domain,
            String function,
            MemorySegment postFunction,
            int depthWrs,
            int maxSges,
            long slotBytes,
            long nextOffset,
            long sgListOffset,
            long extraBytesPerSlot) {
        this.owner = owner;
        this.domain = domain;
        this.function = function;
        this.postFunction = postFunction;
        this.capacityWrs = Math.clamp(depthWrs, 1, MAX_STAGED_WRS);
        this.maxSges = maxSges;
        this.passesEmptySges = domain.context().device().transportType() == TransportType.IWARP;
        this.slotBytes = slotBytes;
        this.nextOffset = nextOffset;
        this.sgesAt = capacityWrs * slotBytes;
        long extraAt = sgesAt + (long) capacityWrs * maxSges * IbvSge.SIZE;
        this.refusedAt = (extraAt + capacityWrs * extraBytesPerSlot + Long.BYTES - 1) / Long.BYTES * Long.BYTES;
        this.memory = NativeHeap.allocate(refusedAt + Long.BYTES);
        this.base = memory.address();
        for (int i = 0; i < capacityWrs; i++) {
            link(i, i + 1 < capacityWrs ? base + (i + 1) * slotBytes : 0);
            memory.set(CStruct.PTR, i * slotBytes + sgListOffset, base + sgesOf(i));
        }
    }

    private long sgesOf(long slot) {
        return sgesAt + slot * maxSges * IbvSge.SIZE;
    }

    /**
     * Where the extra bytes of slots begin.
     *
     * @return offset in {@link #memory}
     */
    final long extraAt() {
        return sgesAt + (long) capacityWrs * maxSges * IbvSge.SIZE;
    }

    private void link(int slot, long next) {
        memory.set(CStruct.PTR, slot * slotBytes + nextOffset, next);
    }

    /**
     * The number of work requests that fit between two flushes.
     *
     * @return 1 to 64
     */
    public final int capacityWrs() {
        return capacityWrs;
    }

    /**
     * The number of work requests that wait for a flush.
     *
     * @return 0 to {@link #capacityWrs()}
     */
    public final int stagedWrs() {
        return tail - head;
    }

    /**
     * Whether a flush has to come before the next work request.
     *
     * @return true if no slot is left
     */
    public final boolean isFull() {
        return tail == capacityWrs;
    }

    /**
     * The maximum number of scatter/gather elements of a work request.
     *
     * @return what the device granted
     */
    public final int maxSges() {
        return maxSges;
    }

    /**
     * Begins a work request in the next slot.
     *
     * @return where the slot is in {@link #memory}
     */
    protected final long begin() {
        owner.nativeAddress();
        if (tail == capacityWrs) {
            throw new IllegalStateException(
                    capacityWrs + " work requests are staged for " + owner + ", which is all that fit: flush first");
        }
        long slot = tail * slotBytes;
        tail++;
        sges = 0;
        current = slot;
        if (maxSges > 0) {
            // libirdma takes the first element of a work request that has none (irdma/uk.c): length and key are 0 then.
            memory.set(CStruct.U64, sgesOf(tail - 1) + IbvSge.LENGTH, 0L);
        }
        return slot;
    }

    /**
     * The work request being filled.
     *
     * @return where its slot is in {@link #memory}
     */
    protected final long current() {
        if (current == NONE) {
            throw new IllegalStateException("no work request has been begun, or the last one was refused");
        }
        return current;
    }

    /**
     * Removes the work request being filled, because it was refused.
     *
     * @param reason what is wrong with it
     * @return the exception to throw
     */
    final IllegalArgumentException refuse(String reason) {
        drop();
        return new IllegalArgumentException(reason + "; the work request was not staged");
    }

    /**
     * Removes the work request being filled, because it goes outside of its memory.
     *
     * @param reason what is wrong with it
     * @return the exception to throw
     */
    final IndexOutOfBoundsException refuseOutside(String reason) {
        drop();
        return new IndexOutOfBoundsException(reason + "; the work request was not staged");
    }

    /**
     * Removes the work request being filled, because it has become invalid: memory that it names was closed meanwhile,
     * for example.
     *
     * @param cause why
     * @return the cause, to throw
     */
    final RuntimeException takenBack(RuntimeException cause) {
        drop();
        return cause;
    }

    private void drop() {
        if (current != NONE) {
            current = NONE;
            tail--;
        }
    }

    /** How many elements the work request being filled has. */
    final int sgeCount() {
        return sges;
    }

    /**
     * Which slot is being filled.
     *
     * @return from 0
     */
    protected final int currentSlot() {
        return tail - 1;
    }

    /**
     * Adds an element to the work request being filled. One of no bytes is left out: some adapters, mlx4's among them,
     * take the length 0 for 2^31 bytes. iWARP's devices take it for what it is, and some want one in every receive.
     *
     * @param address virtual
     * @param lengthBytes 0 or more
     * @param localKey of the region, or anything for inline data
     * @return how many elements there are now
     */
    protected final int addSge(long address, int lengthBytes, int localKey) {
        if (lengthBytes == 0 && !passesEmptySges) {
            return sges;
        }
        if (sges == maxSges) {
            throw refuse("more than " + maxSges + " scatter/gather elements, which is what " + owner + " has");
        }
        long sge = sgesOf(tail - 1) + sges * IbvSge.SIZE;
        memory.set(CStruct.U64, sge + IbvSge.ADDR, address);
        memory.set(CStruct.U32, sge + IbvSge.LENGTH, lengthBytes);
        memory.set(CStruct.U32, sge + IbvSge.LKEY, localKey);
        return ++sges;
    }

    /**
     * Checks an SGE of a region.
     *
     * @param region the region that contains it
     * @param offsetBytes where it begins
     * @param lengthBytes how long it is
     * @param rights C's bits that the region must have
     */
    protected final void checkSge(MemoryRegion region, long offsetBytes, int lengthBytes, int rights) {
        current();
        if (offsetBytes < 0 || lengthBytes < 0 || offsetBytes > region.lengthBytes() - lengthBytes) {
            throw refuseOutside("offset " + offsetBytes + " and length " + lengthBytes + " are outside the " + region);
        }
        if ((region.accessMask() & rights) != rights) {
            throw refuse("the " + region + " has the rights " + region.access() + " and needs "
                    + NativeConstant.set(AccessFlag.class, rights));
        }
        if (!region.isOpen()) {
            throw refuse("the " + region + " is closed");
        }
        if (region.domain() != domain && !region.domain().sharesMemoryWith(domain)) {
            throw refuse("the " + region + " is registered in another protection domain than " + owner);
        }
    }

    /** Discards what is staged. */
    public final void discard() {
        head = 0;
        tail = 0;
        current = NONE;
    }

    /**
     * Posts everything staged to the device with one call.
     *
     * @throws VerbsException the device refused; what it did not take is still staged
     */
    public final void flush() {
        int errno = tryFlush();
        if (errno != 0) {
            throw Failures.failure(function, owner + ", " + stagedWrs() + " not taken", errno);
        }
    }

    /**
     * Gives everything staged to the device with one call, and returns the error instead of throwing if the device
     * refuses.
     *
     * @return 0, or errno: ENOMEM (12) means that the queue is full; what the device did not take is still staged
     */
    public final int tryFlush() {
        long queue = owner.nativeAddress();
        current = NONE;
        if (head == tail) {
            return 0;
        }
        int end = tail;
        link(end - 1, 0);
        memory.set(CStruct.PTR, refusedAt, 0);
        int result = post(postFunction, queue, base + head * slotBytes, base + refusedAt);
        if (end < capacityWrs) {
            link(end - 1, base + end * slotBytes);
        }
        if (result == 0 && memory.get(CStruct.PTR, refusedAt) == 0) {
            head = 0;
            tail = 0;
            return 0;
        }
        return refused(result, memory.get(CStruct.PTR, refusedAt));
    }

    /**
     * Gives the device work requests that the caller has laid out itself, as C's headers have them. What is staged here
     * stays staged. Nothing is checked: a wrong address ends the JVM, and the device fails a wrong work request.
     *
     * @param first address of an {@code ibv_send_wr} or {@code ibv_recv_wr}; its {@code next} leads to those after it.
     *     The device has copied what it accepted when this returns
     * @return 0, or errno: ENOMEM (12) means that the queue is full; the device may have taken those before the refused
     *     one
     * @throws IllegalStateException the queue pair is closed
     */
    public final int tryPostNative(long first) {
        long queue = owner.nativeAddress();
        memory.set(CStruct.PTR, refusedAt, 0);
        int result = post(postFunction, queue, first, base + refusedAt);
        return result == 0 && memory.get(CStruct.PTR, refusedAt) == 0 ? 0 : errno(result);
    }

    /**
     * Calls the device.
     *
     * @param pointer the function
     * @param queue address of the C object
     * @param first address of the first work request
     * @param refused address of a pointer to the first one that is refused
     * @return errno, as the device's library puts it
     */
    protected abstract int post(MemorySegment pointer, long queue, long first, long refused);

    /**
     * Finds out which work requests the device refused. Drivers report it in four ways: by errno (most); by its
     * negative (siw); by -1, with the work requests in the queue and the kernel not notified (siw); and by 0, with a
     * refused work request named (siw, when the queue overflows behind some that fitted).
     *
     * @param result what the call returned
     * @param refused which work request it named, 0 for none
     * @return a positive errno
     */
    private int refused(int result, long refused) {
        long index = (refused - base) / slotBytes;
        if (refused != 0 && index >= head && index < tail) {
            head = (int) index;
        } else {
            // None is named: they are in the queue, where they complete or are flushed; posting them again would send
            // them twice.
            head = 0;
            tail = 0;
        }
        return errno(result);
    }

    /** A positive errno for what a call returned that refused something. */
    private static int errno(int result) {
        return switch (result) {
            case 0 -> Errno.ENOMEM;
            case -1 -> Errno.EIO;
            default -> Math.abs(result);
        };
    }

    /**
     * Frees the native memory, when the owner is destroyed: from then on its address is 0, and nothing can be begun.
     */
    final void free() {
        discard();
        NativeHeap.free(memory);
    }
}
