package org.verbena.transport.spi;

/**
 * One operation for an endpoint's send queue. Reusable: set it with one of the {@code asX} methods, add local memory to
 * {@link #buffers()}, and post it. One thread at a time.
 */
public final class WorkRequest {
    private final ScatterGatherList buffers;
    private Opcode opcode = Opcode.SEND;
    private int flags;
    private long workId;
    private long remoteAddress;
    private int remoteKey;
    private int immediateData;
    private long compareOrAdd;
    private long swap;

    /**
     * Creates an empty request.
     *
     * @param maxSges the most scatter/gather elements that it can hold, 1 or more
     */
    public WorkRequest(int maxSges) {
        buffers = new ScatterGatherList(maxSges);
    }

    private WorkRequest set(Opcode code, long id, int mask) {
        opcode = code;
        workId = id;
        flags = mask;
        remoteAddress = 0;
        remoteKey = 0;
        immediateData = 0;
        compareOrAdd = 0;
        swap = 0;
        buffers.clear();
        return this;
    }

    /**
     * A send of what {@link #buffers()} will hold.
     *
     * @param id returned in the completion
     * @param mask flags: a mask of {@link #INLINE}, {@link #FENCE}, {@link #SOLICITED}, {@link #UNSIGNALLED}
     * @return this
     */
    public WorkRequest asSend(long id, int mask) {
        return set(Opcode.SEND, id, mask);
    }

    /**
     * A send with immediate data.
     *
     * @param id returned in the completion
     * @param mask as in {@link #asSend}
     * @param immediate 32 bits for the peer, in host order
     * @return this
     */
    public WorkRequest asSendWithImmediate(long id, int mask, int immediate) {
        set(Opcode.SEND_WITH_IMMEDIATE, id, mask);
        immediateData = immediate;
        return this;
    }

    /**
     * A send that invalidates a key of the peer.
     *
     * @param id returned in the completion
     * @param mask as in {@link #asSend}
     * @param key the peer's remote key
     * @return this
     */
    public WorkRequest asSendWithInvalidate(long id, int mask, int key) {
        set(Opcode.SEND_WITH_INVALIDATE, id, mask);
        remoteKey = key;
        return this;
    }

    /**
     * A write of what {@link #buffers()} will hold into the peer's memory.
     *
     * @param id returned in the completion
     * @param mask as in {@link #asSend}
     * @param address the address in the peer's memory
     * @param key the peer's remote key
     * @return this
     */
    public WorkRequest asWrite(long id, int mask, long address, int key) {
        set(Opcode.WRITE, id, mask);
        remoteAddress = address;
        remoteKey = key;
        return this;
    }

    /**
     * A write that also consumes a receive of the peer and delivers 32 bits to it.
     *
     * @param id returned in the completion
     * @param mask as in {@link #asSend}
     * @param address the address in the peer's memory
     * @param key the peer's remote key
     * @param immediate 32 bits for the peer, in host order
     * @return this
     */
    public WorkRequest asWriteWithImmediate(long id, int mask, long address, int key, int immediate) {
        set(Opcode.WRITE_WITH_IMMEDIATE, id, mask);
        remoteAddress = address;
        remoteKey = key;
        immediateData = immediate;
        return this;
    }

    /**
     * A read of the peer's memory into what {@link #buffers()} will hold.
     *
     * @param id returned in the completion
     * @param mask {@link #FENCE} or 0
     * @param address the address in the peer's memory
     * @param key the peer's remote key
     * @return this
     */
    public WorkRequest asRead(long id, int mask, long address, int key) {
        set(Opcode.READ, id, mask);
        remoteAddress = address;
        remoteKey = key;
        return this;
    }

    /**
     * An atomic compare-and-swap of 8 bytes; the old value is stored in the single 8-byte element of {@link
     * #buffers()}, in host order.
     *
     * @param id returned in the completion
     * @param mask {@link #FENCE} or 0
     * @param address the address in the peer's memory; a multiple of 8
     * @param key the peer's remote key
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @return this
     */
    public WorkRequest asCompareAndSwap(long id, int mask, long address, int key, long expected, long value) {
        set(Opcode.COMPARE_AND_SWAP, id, mask);
        remoteAddress = address;
        remoteKey = key;
        compareOrAdd = expected;
        swap = value;
        return this;
    }

    /**
     * An atomic add to 8 bytes; the old value is stored in the single 8-byte element of {@link #buffers()}, in host
     * order.
     *
     * @param id returned in the completion
     * @param mask {@link #FENCE} or 0
     * @param address the address in the peer's memory; a multiple of 8
     * @param key the peer's remote key
     * @param add the value to add; overflow wraps
     * @return this
     */
    public WorkRequest asFetchAndAdd(long id, int mask, long address, int key, long add) {
        set(Opcode.FETCH_AND_ADD, id, mask);
        remoteAddress = address;
        remoteKey = key;
        compareOrAdd = add;
        return this;
    }

    /**
     * The local memory.
     *
     * @return this request's own list
     */
    public ScatterGatherList buffers() {
        return buffers;
    }

    /**
     * The operation.
     *
     * @return the operation
     */
    public Opcode opcode() {
        return opcode;
    }

    /**
     * How.
     *
     * @return a mask of {@link #INLINE}, {@link #FENCE}, {@link #SOLICITED}, {@link #UNSIGNALLED}
     */
    public int flags() {
        return flags;
    }

    /**
     * The id that the completion returns.
     *
     * @return as given
     */
    public long workId() {
        return workId;
    }

    /**
     * The address in the peer's memory.
     *
     * @return 0 for sends
     */
    public long remoteAddress() {
        return remoteAddress;
    }

    /**
     * The peer's key of the memory to access or to invalidate.
     *
     * @return 0 for plain sends
     */
    public int remoteKey() {
        return remoteKey;
    }

    /**
     * 32 bits for the peer.
     *
     * @return in host order
     */
    public int immediateData() {
        return immediateData;
    }

    /**
     * The expected value of a compare-and-swap, or the value that a fetch-and-add adds.
     *
     * @return 0 for others
     */
    public long compareOrAdd() {
        return compareOrAdd;
    }

    /**
     * The new value of a compare-and-swap.
     *
     * @return 0 for others
     */
    public long swap() {
        return swap;
    }

    /**
     * Copies the payload into the work request while posting, so that its memory can be reused immediately. Sends and
     * writes only.
     */
    public static final int INLINE = 1;

    /** Starts only when all preceding reads and atomics are done. Chelsio's adapters look at that of a send only. */
    public static final int FENCE = 1 << 1;

    /** Wakes a peer that waits for solicited completions only. */
    public static final int SOLICITED = 1 << 2;

    /**
     * Nobody waits for its completion, which may be reported as late as that of a later work request, and at the end of
     * the connection at the latest. So the adapter need not write one: only a failure has one of its own. For sends and
     * writes that are {@link #INLINE}, whose memory nothing has to hold until then. A provider whose completions cost
     * nothing reports it as any other.
     */
    public static final int UNSIGNALLED = 1 << 3;

    /** The operations of a send queue. */
    public enum Opcode {
        /** Two-sided: consumes a receive of the peer. */
        SEND,
        /** A send with 32 bits of immediate data. */
        SEND_WITH_IMMEDIATE,
        /** A send that invalidates a key of the peer. */
        SEND_WITH_INVALIDATE,
        /** One-sided: writes the peer's memory. */
        WRITE,
        /** A write that consumes a receive of the peer and carries 32 bits. */
        WRITE_WITH_IMMEDIATE,
        /** One-sided: reads the peer's memory. */
        READ,
        /** One-sided, atomic: swaps 8 bytes if they equal what is expected. */
        COMPARE_AND_SWAP,
        /** One-sided, atomic: adds to 8 bytes. */
        FETCH_AND_ADD
    }
}
