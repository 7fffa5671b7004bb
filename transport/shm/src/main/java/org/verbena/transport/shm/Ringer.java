package org.verbena.transport.shm;

import java.io.IOException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Rings for the peer of one connection when that has something to do: at the doorbell of its loop, once the peer has
 * sent where that is; before, the peer sets in the ring whether it sleeps. Not thread-safe; confined to the loop's
 * thread.
 */
final class Ringer implements Control.Bells {
    private static final Logger LOG = LoggerFactory.getLogger(Ringer.class);

    private final RingWriter ring;

    /** Null if it is not sure which process the peer is: then nothing of it is mapped. */
    private final @Nullable PeerProcess process;

    private @Nullable PeerDoorbell doorbell;
    private int slot;
    private boolean hasCome;

    /** The peer knows that this side rings there, and does not wait for anything else. */
    private boolean hasRung;

    Ringer(RingWriter ring, @Nullable PeerProcess process) {
        this.ring = ring;
        this.process = process;
    }

    /** The peer has a doorbell. One that cannot be mapped is done without. */
    @Override
    public void ringAt(int descriptor, long inode, int number) {
        if (hasCome || number < 0 || number >= Doorbell.MOST) {
            throw new RingException(hasCome ? "a second doorbell" : "the doorbell's bit " + number);
        }
        hasCome = true;
        if (process == null || descriptor < 0) {
            return;
        }
        try {
            doorbell = process.openDoorbell(descriptor, inode);
            slot = number;
        } catch (IOException e) {
            LOG.debug("the doorbell of {} cannot be mapped; each of its connections is woken by itself", process, e);
        }
    }

    /**
     * Rings, after what the peer is to see was published.
     *
     * @return 0 if it looks by itself; else what {@link #woken} takes once a wake-up was sent
     */
    long ring() {
        PeerDoorbell at = doorbell;
        if (at == null) {
            return ring.wakeReader() ? 1 : 0;
        }
        if (hasRung && at.isLooking()) {
            return 0;
        }
        hasRung = true;
        return at.ring(slot);
    }

    void woken(long sleep) {
        PeerDoorbell at = doorbell;
        if (at != null) {
            at.woken(sleep);
        }
    }

    /** The connection has ended. Idempotent. */
    void close() {
        PeerDoorbell at = doorbell;
        if (at != null && process != null) {
            doorbell = null;
            process.release(at);
        }
    }
}
