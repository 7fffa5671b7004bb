package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.work.SendFlags;

/**
 * What is staged on a send queue: which work requests are signalled, when they go to the device, and how many it was
 * never given. Not thread-safe; confined to the loop's thread.
 *
 * <p>The completion of a signalled work request is that of all before it, so few are signalled:
 *
 * <ul>
 *   <li>one in {@link #MAX_UNSIGNALLED}, and in a quarter of the queue, so that slots come back;
 *   <li>the last of a flush, if somebody waits for what no completion under way covers; but not while {@link
 *       #FEW_SIGNALLED} are under way, whose coming leads to the next (only with drivers that do not return as flushed
 *       what was done);
 *   <li>when the last of these has come, and somebody still waits, a write of no bytes, which needs neither a key nor
 *       memory: as UCX flushes. At the end there is one more, behind which all have come back.
 * </ul>
 *
 * <p>A work request that fails has a completion whether or not it is signalled. A peer that rdma_cm connects takes
 * writes; programs that connect queue pairs by hand often refuse them (ibv_rc_pingpong does), even of no bytes.
 */
final class SendStaging {
    private static final Logger LOG = LoggerFactory.getLogger(SendStaging.class);

    /** UCX signals one in 64 (uct/ib/rc/base/rc_iface.c): little is gained beyond this, and slots come back sooner. */
    static final int MAX_UNSIGNALLED = 32;

    /**
     * As long as no more completions than this are under way, a flush signals: for a short burst that costs less than
     * asking when it is over.
     */
    static final int FEW_SIGNALLED = 4;

    /** Work requests of its own that the queue has room for: one that asks while work goes on, and one at the end. */
    static final int MAX_ASKING = 2;

    /** Receives what the device refuses. */
    interface Refusals {
        /**
         * The device did not take all that was staged.
         *
         * @param errno why
         * @param taken how many of those that are out it has taken
         * @param out how many are out
         */
        void onSendsRefused(int errno, int taken, int out);
    }

    private final WorkRing<?> ring;
    private final Refusals refusals;

    /** Whether a write of no bytes may be posted; if not, each flush is signalled. */
    private boolean asks;

    private @Nullable SendQueue queue;
    private int index;
    private int generation;
    private int maxUnsignalled;
    private int maxSignalledOut;

    // Work requests are numbered as WorkRing does. An end is the number behind the last one.

    /** Behind the last work request for whose completion somebody waits. */
    private long awaitedEnd;

    /** Behind the last signalled work request, which may still be staged; with it all before it complete. */
    private long signalledEnd;

    /** Behind the last signalled work request that the device has. */
    private long postedSignalledEnd;

    /** Behind the last work request that completes with a write of no bytes. */
    private long askedEnd;

    /** The same at the end. */
    private long lastAskedEnd;

    /** How many signalled work requests are not known to be done. */
    private int signalledOut;

    private boolean isOver;

    /** How many of those that are out the device was never given. */
    private int unposted;

    /**
     * Nothing is staged.
     *
     * @param ring what is out
     * @param refusals receives what the device refuses
     */
    SendStaging(WorkRing<?> ring, Refusals refusals) {
        this.ring = ring;
        this.refusals = refusals;
    }

    /**
     * The queue is there.
     *
     * @param made the queue
     * @param signalsAll whether each work request is signalled
     * @param asks whether the queue carries writes, and the peer takes them
     * @param defers whether a flush may then leave it to a later one to signal
     * @param endpointIndex of the ids of its work requests
     * @param endpointGeneration and this
     */
    void prepared(
            SendQueue made,
            boolean signalsAll,
            boolean asks,
            boolean defers,
            int endpointIndex,
            int endpointGeneration) {
        this.asks = asks;
        queue = made;
        index = endpointIndex;
        generation = endpointGeneration;
        maxUnsignalled = signalsAll ? 1 : Math.clamp(ring.depth() / 4, 1, MAX_UNSIGNALLED);
        maxSignalledOut = asks && defers ? FEW_SIGNALLED : Integer.MAX_VALUE;
    }

    SendQueue queue() {
        return VerbsEndpoint.required(queue);
    }

    /** The id of a work request. */
    long id(int kind, int slot) {
        return WorkRequestId.of(index, generation, kind, slot);
    }

    /** Whether the next work request is to be signalled. */
    boolean signalsNext() {
        return ring.end() + 1 - signalledEnd >= maxUnsignalled;
    }

    /** The next work request was staged; it is not in the ring yet. */
    void staged(boolean signalled, boolean awaited) {
        if (signalled) {
            signalledEnd = ring.end() + 1;
            signalledOut++;
        }
        if (awaited || !asks) {
            awaitedEnd = ring.end() + 1;
        }
    }

    /**
     * Gives what is staged to the device.
     *
     * @return false if it refused: {@link Refusals#onSendsRefused} has been called
     */
    boolean flush() {
        SendQueue staged = queue;
        if (staged == null || staged.stagedWrs() == 0) {
            return true;
        }
        if (awaitedEnd > coveredEnd() && signalledOut < maxSignalledOut) {
            staged.signalLast();
            signalledEnd = ring.end();
            signalledOut++;
        }
        int errno = staged.tryFlush();
        if (errno != 0) {
            refusals.onSendsRefused(errno, ring.count() - staged.stagedWrs(), ring.count());
            return false;
        }
        postedSignalledEnd = signalledEnd;
        return true;
    }

    // ---- completions

    /** Behind the last work request that completes with what is signalled, staged or under way. */
    private long coveredEnd() {
        return Math.max(signalledEnd, askedEnd);
    }

    /** A signalled work request was done. */
    void signalledDone() {
        signalledOut--;
    }

    /** How many of those that are out the device was not given yet. */
    int staged() {
        SendQueue known = queue;
        return known == null ? 0 : known.stagedWrs();
    }

    /** Whether the completion of a work request is under way, one that asks for others apart. */
    boolean isSignalledOut() {
        return postedSignalledEnd > ring.begin();
    }

    /** A batch of completions was handled: if somebody waits, and nothing is under way, it is asked for. */
    void batchEnded() {
        if (!asks || isOver) {
            return;
        }
        int staged = queue().stagedWrs();
        long underWayEnd = Math.max(postedSignalledEnd, askedEnd);
        if (underWayEnd <= ring.begin() && Math.min(awaitedEnd, ring.end() - staged) > underWayEnd) {
            if (staged == 0) {
                ask();
            } else {
                flush(); // of which one is signalled
            }
        }
    }

    /** From now on somebody waits for all that are out. */
    void awaitAll() {
        awaitedEnd = ring.end();
        if (flush()) {
            batchEnded();
        }
    }

    private void ask() {
        int errno = post(WorkRequestId.ASKING);
        if (errno != 0) {
            refusals.onSendsRefused(errno, ring.count(), ring.count());
            return;
        }
        askedEnd = ring.end();
    }

    /** Nothing is staged now. */
    private int post(int slot) {
        SendQueue empty = queue();
        empty.write(id(WorkRequestId.SEND, slot), SendFlags.SIGNALED, 0, 0);
        int errno = empty.tryFlush();
        if (errno != 0) {
            empty.discard();
        }
        return errno;
    }

    /**
     * A write of no bytes has completed; those before it that are still out were done.
     *
     * @param slot which one
     * @return the end of those
     */
    long askedEnd(int slot) {
        return slot == WorkRequestId.ASKING ? askedEnd : lastAskedEnd;
    }

    // ---- the end

    /**
     * Forgets what is staged: it stays out. What the device has comes back, flushed or before the last completion of
     * all.
     */
    void end() {
        SendQueue known = queue;
        isOver = true;
        if (known == null) {
            return;
        }
        unposted = known.stagedWrs();
        known.discard();
        lastAskedEnd = ring.end() - unposted;
        if (asks && lastAskedEnd > Math.max(ring.begin(), Math.max(postedSignalledEnd, askedEnd))) {
            int errno = post(WorkRequestId.LAST_ASKING);
            if (errno != 0) {
                LOG.debug("ibv_post_send() failed with {}: what is out will never complete", Errno.name(errno));
            }
        }
    }

    /** Whether all that are out were never given to the device. */
    boolean areAllBack() {
        return ring.count() == unposted;
    }
}
