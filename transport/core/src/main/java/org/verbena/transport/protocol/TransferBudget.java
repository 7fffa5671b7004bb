package org.verbena.transport.protocol;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;

/**
 * Limits the bytes of long reads and writes that the connections of one loop have outstanding on one device. What
 * exceeds the limit waits here, outside the device, and goes round robin: a connection that got a turn and wants
 * another goes to the end of the queue. So a connection waits for one transfer of each other connection, not for all of
 * their transfers, and a short message has at most the budget in front of it on the wire.
 *
 * <p>A transfer is charged when the device has taken it, and no earlier: no connection holds a part of the budget while
 * it waits for something else. Its completion returns the charge. A transfer longer than the whole budget goes when no
 * other is outstanding. On the loop's thread only.
 *
 * <p>A peer that answers no reads could keep others waiting. But the budget shares the device's time, and such reads
 * take none: a share without a completion for {@link #STALLED_NANOS} while others wait is no longer charged for what it
 * has outstanding.
 */
public final class TransferBudget {
    /**
     * Up to this size a read or write neither waits nor counts: it is no longer than a receive on devices, so it delays
     * others no more than a message does.
     */
    static final int SHORT_BYTES = 16 << 10;

    /** Long for a device: 8 MiB take less on a network of 1 Gbit/s. */
    public static final long STALLED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Finds the budget for a device. */
    @FunctionalInterface
    public interface Source {
        /**
         * The budget of the calling loop for a device.
         *
         * @param domain an endpoint's memory domain
         * @return shared by all connections of that loop and device
         */
        TransferBudget forDomain(MemoryDomain domain);
    }

    private final long maxBytes;
    private final int shortBytes;
    private long outBytes;
    private @Nullable Share firstWaiting;
    private @Nullable Share lastWaiting;
    private @Nullable Share firstCharged;
    private long checkedNanos;
    private boolean checked;

    /**
     * Creates one.
     *
     * @param maxBytes the most that may be outstanding, except for a single longer transfer; 1 or more
     * @throws IllegalArgumentException it is less
     */
    public TransferBudget(long maxBytes) {
        this(maxBytes, SHORT_BYTES);
    }

    /**
     * Creates one with another limit up to which transfers neither wait nor count.
     *
     * @param maxBytes the most that may be outstanding, except for a single longer transfer; 1 or more
     * @param shortBytes that limit
     * @throws IllegalArgumentException {@code maxBytes} is less than 1
     */
    public TransferBudget(long maxBytes, int shortBytes) {
        if (maxBytes < 1) {
            throw new IllegalArgumentException("a budget of " + maxBytes + " bytes: 1 or more");
        }
        this.maxBytes = maxBytes;
        this.shortBytes = shortBytes;
    }

    /**
     * The bytes of outstanding transfers that are charged now.
     *
     * @return bytes
     */
    public long outBytes() {
        return outBytes;
    }

    /**
     * Whether a share waits.
     *
     * @return whether a share was refused and has not asked again
     */
    public boolean isAwaited() {
        return firstWaiting != null;
    }

    private boolean fits(long bytes) {
        return outBytes == 0 || bytes <= maxBytes - outBytes;
    }

    /** Notifies the first that waits, once, when there is room for it. */
    private void notifyFirst() {
        Share first = firstWaiting;
        if (first != null && !first.notified && fits(first.wantedBytes)) {
            first.notified = true;
            first.waiter.run();
        }
    }

    /**
     * Stops charging shares without a completion since the last check but one. Waiting connections call this now and
     * then.
     */
    void check(long nowNanos) {
        if (checked && nowNanos - checkedNanos < STALLED_NANOS) {
            return;
        }
        checked = true;
        checkedNanos = nowNanos;
        Share share = firstCharged;
        while (share != null) {
            Share next = share.nextCharged;
            if (share.stalled) {
                share.uncharge(share.chargedBytes);
            } else {
                share.stalled = true;
            }
            share = next;
        }
        notifyFirst();
    }

    @Override
    public String toString() {
        return outBytes + " of " + maxBytes + " bytes out" + (isAwaited() ? ", awaited" : "");
    }

    /** What takes turns: the reads of a connection for its peer's messages, or its program's own reads and writes. */
    public final class Share {
        private final Runnable waiter;
        private final Runnable onWait;
        private long chargedBytes;
        private long wantedBytes;
        private boolean waiting;
        /** It asked in this round and was refused. */
        private boolean refused;
        /** The waiter was notified that it is its turn, and has not asked since. */
        private boolean notified;
        /** Nothing has completed since the last check. */
        private boolean stalled;

        private @Nullable Share nextWaiting;
        private @Nullable Share previousWaiting;
        private @Nullable Share nextCharged;
        private @Nullable Share previousCharged;

        /**
         * Creates a share that has nothing outstanding and does not wait.
         *
         * @param waiter run when it is worth asking again; must not call back
         * @param onWait run when it begins to wait
         */
        public Share(Runnable waiter, Runnable onWait) {
            this.waiter = waiter;
            this.onWait = onWait;
        }

        /** A round of asking begins. */
        public void beginAsking() {
            refused = false;
        }

        /**
         * A round has ended: if nothing was refused in it, this share wants nothing now and leaves the queue to others.
         */
        public void endAsking() {
            if (waiting && !refused) {
                leave();
            }
        }

        /**
         * Whether a transfer may go now. If not, this share has its place in the queue.
         *
         * @param bytes its length
         * @return whether it may go
         */
        public boolean tryBegin(long bytes) {
            if (bytes <= shortBytes) {
                return true;
            }
            notified = false;
            Share first = firstWaiting;
            if ((first == null || first.equals(this)) && fits(bytes)) {
                return true;
            }
            wantedBytes = bytes;
            refused = true;
            if (!waiting) {
                append();
                onWait.run();
            }
            return false;
        }

        /**
         * The device has taken a transfer that {@link #tryBegin} allowed.
         *
         * @param bytes its length
         * @return what it is charged, for {@link #ended}
         */
        public long begun(long bytes) {
            if (bytes <= shortBytes) {
                return 0;
            }
            outBytes += bytes;
            if (chargedBytes == 0) {
                addCharged();
            }
            chargedBytes += bytes;
            leave();
            return bytes;
        }

        /**
         * A transfer has ended, whatever its outcome.
         *
         * @param bytes what it was charged
         */
        public void ended(long bytes) {
            stalled = false;
            uncharge(Math.min(bytes, chargedBytes));
            Share first = firstWaiting;
            if (first != null && !first.equals(this)) { // this one asks again at the end of its batch
                notifyFirst();
            }
        }

        /** Waits no longer. */
        public void leave() {
            if (!waiting) {
                return;
            }
            waiting = false;
            notified = false;
            Share before = previousWaiting;
            Share after = nextWaiting;
            if (before == null) {
                firstWaiting = after;
            } else {
                before.nextWaiting = after;
            }
            if (after == null) {
                lastWaiting = before;
            } else {
                after.previousWaiting = before;
            }
            previousWaiting = null;
            nextWaiting = null;
            notifyFirst();
        }

        boolean isWaiting() {
            return waiting;
        }

        long chargedBytes() {
            return chargedBytes;
        }

        /**
         * Stops charging shares that are stalled. Waiting connections call this now and then.
         *
         * @param nowNanos {@link System#nanoTime()}
         */
        public void check(long nowNanos) {
            TransferBudget.this.check(nowNanos);
        }

        private void append() {
            waiting = true;
            previousWaiting = lastWaiting;
            if (lastWaiting == null) {
                firstWaiting = this;
            } else {
                lastWaiting.nextWaiting = this;
            }
            lastWaiting = this;
        }

        private void addCharged() {
            stalled = false;
            nextCharged = firstCharged;
            if (firstCharged != null) {
                firstCharged.previousCharged = this;
            }
            firstCharged = this;
        }

        private void uncharge(long bytes) {
            if (bytes == 0) {
                return;
            }
            outBytes -= bytes;
            chargedBytes -= bytes;
            if (chargedBytes > 0) {
                return;
            }
            Share before = previousCharged;
            Share after = nextCharged;
            if (before == null) {
                firstCharged = after;
            } else {
                before.nextCharged = after;
            }
            if (after != null) {
                after.previousCharged = before;
            }
            previousCharged = null;
            nextCharged = null;
        }
    }
}
