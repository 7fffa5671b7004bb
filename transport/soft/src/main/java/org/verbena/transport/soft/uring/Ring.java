package org.verbena.transport.soft.uring;

import java.lang.foreign.MemorySegment;

/**
 * A pair of queues between this thread and the kernel, and the buffers that sockets are received into. Operations are
 * only noted until {@link #look}, {@link #await} or {@link #submit}; each has one completion, or several of which the
 * last has no {@link #MORE}. Not thread-safe; confined to the thread that {@linkplain #start started} it.
 */
public interface Ring {
    /** Of a completion: others of the same operation follow. */
    int MORE = 1 << 1;

    /** The receive buffers of a ring, a power of two. */
    int BUFFERS = 1024;

    /** What one of them holds. */
    int BUFFER_BYTES = 4 << 10;

    /** Room in front of each, for what an earlier buffer left over. */
    int HEADROOM_BYTES = 256;

    /** From one to the next. */
    int BUFFER_STRIDE = HEADROOM_BYTES + BUFFER_BYTES;

    /** What is called for each completion. */
    @FunctionalInterface
    interface Completions {
        /**
         * An operation has completed, in part or for good. Must not throw, and must not call the ring.
         *
         * @param id as it was given
         * @param result bytes, or a negative errno
         * @param flags {@link #MORE}, and which buffer
         */
        void completed(long id, int result, int flags);
    }

    /**
     * The buffer that a completion of {@link #receive} has filled, which is the caller's until it calls {@link
     * #provide}.
     *
     * @param flags of the completion
     * @return its number, or -1 for none
     */
    static int buffer(int flags) {
        return (flags & 1) == 0 ? -1 : flags >>> 16;
    }

    /**
     * Begins to work; the thread is the only one from now on.
     *
     * @param completions gets those that are found
     */
    void start(Completions completions);

    /** All receive buffers: that with number n begins at n times {@link #BUFFER_STRIDE}, with its headroom. */
    MemorySegment buffers();

    /** Gives a buffer back. */
    void provide(int buffer);

    /** Receives all that comes into buffers, until the stream ends, buffers run out, or it is cancelled. */
    void receive(int descriptor, long id);

    /**
     * Sends bytes, all of them unless the connection breaks.
     *
     * @param address where they are; they stay there until the completion
     * @return a ticket for {@link #lengthen}
     */
    int send(int descriptor, long address, int bytes, long id);

    /**
     * Sends more bytes with a send that the kernel does not have yet.
     *
     * @param ticket of the send
     * @param bytes of it all
     * @return false if it is too late
     */
    boolean lengthen(int ticket, int bytes);

    /** Waits once until a descriptor is ready. */
    void poll(int descriptor, int events, long id);

    /** Reads 8 bytes once they are there. */
    void read(int descriptor, long address, long id);

    /** Cancels an operation, if it is still under way, which then completes. This has a completion as well. */
    void cancel(long target, long id);

    /** Cancels all operations. */
    void cancelAll(long id);

    /** Gives the kernel what was noted. */
    void submit();

    /**
     * Gives the kernel what was noted. What names a descriptor and the kernel did not take completes and does nothing.
     *
     * @param descriptor that is going to be closed
     */
    void submitLast(int descriptor);

    /** Gives the kernel what was noted, and takes the completions that are there; no system call if neither is. */
    void look();

    /**
     * Gives the kernel what was noted, waits for a completion, and takes those that are there.
     *
     * @param nanos the longest wait; negative for no limit
     */
    void await(long nanos);

    /** How often the kernel was entered. Any thread. */
    long enters();

    /**
     * Closes it, after the last completion.
     *
     * @param idle false if operations are still under way: then the kernel keeps the memory that it may write to
     */
    void close(boolean idle);
}
