package org.verbena.transport.protocol.memory;

import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.ReleaseHook;

/**
 * Counts what a connection has delivered and its user has not released: receive buffers by number, or messages by
 * bytes. Charged by the loop, released on any thread; releases on the loop cost no atomic operation.
 */
public final class HeldByUser implements ReleaseHook {
    private static final AtomicLongFieldUpdater<HeldByUser> ELSEWHERE =
            AtomicLongFieldUpdater.newUpdater(HeldByUser.class, "releasedElsewhere");

    private final Runnable wake;

    // Confined to the event loop.
    private @Nullable Thread loop;
    private long charged;
    private long releasedOnLoop;

    private volatile long releasedElsewhere;
    private volatile boolean watched;

    /**
     * Creates one.
     *
     * @param wake called at a release while watched, on whichever thread releases
     */
    public HeldByUser(Runnable wake) {
        this.wake = wake;
    }

    /**
     * The user gets something.
     *
     * @param units how much
     */
    public void charge(long units) {
        if (loop == null) {
            loop = Thread.currentThread();
        }
        charged += units;
    }

    /**
     * The amount that is held now.
     *
     * @return units
     */
    public long held() {
        return charged - releasedOnLoop - releasedElsewhere;
    }

    /** Reports the next release. To miss none, check once more after this. */
    public void watch() {
        watched = true;
    }

    @Override
    public void onReleased(int charge) {
        if (Thread.currentThread().equals(loop)) {
            releasedOnLoop += charge;
        } else {
            ELSEWHERE.addAndGet(this, charge);
        }
        if (watched) {
            watched = false;
            wake.run();
        }
    }
}
