package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.ReleaseHook;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.spi.PeerAddress;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * Registered memory of one device, as the protocol uses it. Receiving and sending have budgets of their own, so that neither can starve the
 * other. Any thread.
 *
 * <p>The budget for receiving is shared out so that whatever was promised to a peer can be kept: what receives take ({@link #reserveReceives}) and the longest
 * message that was promised ({@link #promise}) are never more than the budget together. A message's memory is taken whole or not at all, first come, first
 * served ({@link #tryAllocateMessage}); so the one whose turn it is gets its memory when those before it have been released, and nobody holds a part while
 * waiting for the rest.
 *
 * <p>Peers that announce messages and do not send them occupy memory. So messages leave what receives may take, and all messages of one address together take no
 * more than half of the budget, or one message: beyond that its connections wait while others pass them by.
 */
public interface MessageBuffers {

    /** Finds the buffers for a device. */
    @FunctionalInterface
    interface Source {
        /**
         * The buffers in memory of a domain.
         *
         * @param domain an endpoint's memory domain
         * @return shared by all connections of that device
         */
        MessageBuffers forDomain(MemoryDomain domain);
    }

    /** A waiter for memory to receive into. */
    interface Waiter {
        /**
         * Memory was released, and this waiter should try again. Any thread; must not block. May be called more than
         * once.
         */
        void onMemoryFreed();

        /**
         * What its peer's messages are counted by, with those of all connections of that address.
         *
         * @return of {@link PeerAddress#networkOf}; {@link PeerAddress#UNKNOWN}, which has no limit, unless overridden
         */
        default long network() {
            return PeerAddress.UNKNOWN;
        }
    }

    /**
     * A buffer for a receive, or for a copy of what came in one. No turn is kept: receives are bounded by what was reserved for them.
     *
     * @param capacityBytes its capacity, all of it writable
     * @return empty, one reference; null if the budget is spent for now
     * @throws org.verbena.transport.RdmaException it is more than the whole budget, or the device refused to register more
     */
    @Nullable ByteBuf tryAllocateReceive(int capacityBytes);

    /**
     * A buffer for a whole message, when it is the waiter's turn. If it lies outside the pool, {@link #gather} covers nothing of it.
     *
     * @param capacityBytes its capacity, all of it writable; within what was promised
     * @param waiter told when it is worth trying again, if there is none now; {@link #forgetMessage} ends its waiting
     * @param account charged with the capacity, until the buffer is released
     * @return empty, one reference; null if the budget is spent for now or others wait
     * @throws org.verbena.transport.RdmaException the device refused to register more
     */
    @Nullable ByteBuf tryAllocateMessage(int capacityBytes, Waiter waiter, ReleaseHook account);

    /**
     * A buffer for a stretch of a stream, which waits for no turn: only while nobody waits for a message.
     *
     * @param capacityBytes its capacity, all of it writable
     * @param waiter whose peer sends it; not told of anything
     * @param account charged with the capacity, until the buffer is released
     * @return empty, one reference; null if there is no memory for it
     * @throws org.verbena.transport.RdmaException the device refused to register more
     */
    @Nullable ByteBuf tryAllocateStretch(int capacityBytes, Waiter waiter, ReleaseHook account);

    /**
     * Waits for memory for receives. To miss nothing, try again after this.
     *
     * @param waiter told when it is worth trying again
     */
    void awaitReceives(Waiter waiter);

    /**
     * Stops waiting for memory for receives.
     *
     * @param waiter not called from now on, except by a call that is under way
     */
    void forgetReceives(Waiter waiter);

    /**
     * Stops waiting for a message's memory.
     *
     * @param waiter not called from now on, except by a call that is under way
     */
    void forgetMessage(Waiter waiter);

    /**
     * Reserves a part of the budget for receives that are kept posted. It need not be allocated.
     *
     * @param receives how many
     * @param bufferBytes the size of each
     * @param forSpeed for more than what is needed to go on at all: only while receives take less than half of what they may
     * @return false if there is no room for so many: nothing was reserved
     */
    boolean reserveReceives(int receives, int bufferBytes, boolean forSpeed);

    /**
     * Gives a reservation back.
     *
     * @param receives how many
     * @param bufferBytes the size of each
     */
    void unreserveReceives(int receives, int bufferBytes);

    /**
     * The longest message that a peer may be promised to be taken: from now on there is room for it beside all receives.
     *
     * @param wantedBytes the longest that is wanted
     * @return so many bytes or fewer, 1 or more
     */
    int promise(int wantedBytes);

    /**
     * Whether someone waits for a message's memory.
     *
     * @return a moment's answer
     */
    boolean isMessageAwaited();

    /**
     * How much a connection's user may hold in messages and get another one: it has at the most this and one message.
     *
     * @return bytes
     */
    long shareBytes();

    /**
     * A buffer to send from.
     *
     * @param capacityBytes its capacity, all of it writable
     * @return empty, one reference; null if the budget is spent for now
     * @throws org.verbena.transport.RdmaException it is more than the whole budget, or the device refused to register more
     */
    @Nullable ByteBuf tryAllocateSend(int capacityBytes);

    /**
     * Adds the registered memory behind a stretch of a buffer, through slices and composites, as far as it is registered in this domain and
     * the pieces suffice.
     *
     * @param buffer any buffer
     * @param index where to begin
     * @param lengthBytes how far to go, at the most
     * @param maxPieces how many pieces to add, at the most
     * @param into where they are added
     * @return bytes covered from {@code index} on; 0 if the first of them is not in registered memory
     */
    int gather(ByteBuf buffer, int index, int lengthBytes, int maxPieces, ScatterGatherList into);
}
