package org.verbena.transport.protocol.wire;

/**
 * What the next header reports to the peer besides the counts of {@link Credits}: how many of its messages were read,
 * that something had to wait for grants, and that this end wants grants back.
 */
public final class HeaderState {
    private int rendezvousDone;
    private boolean rendezvousDue;
    private boolean waited;
    private boolean waiting;
    private boolean reclaims;
    /** Something may be worth a frame of its own. */
    private boolean changed;

    /** One more message of the peer was read. */
    public void rendezvousDone() {
        rendezvousDone++;
        rendezvousDue = true;
        changed = true;
    }

    /** Something has to wait for grants. */
    public void waits() {
        waited = true;
        waiting = true;
        changed = true;
    }

    /** Nothing waits for grants any more. */
    public void goesOn() {
        waiting = false;
    }

    /** Whether something waits for grants now. */
    public boolean isWaiting() {
        return waiting;
    }

    /** This end wants back the grants that the peer does not use. */
    public void reclaim() {
        reclaims = true;
        changed = true;
    }

    /** What the peer should know, or has asked, has changed: that may be worth a frame of its own. */
    public void changed() {
        changed = true;
    }

    /** Whether anything may be worth a frame of its own: a message asks no more than this. */
    public boolean hasChanged() {
        return changed;
    }

    /** Nothing is, until something changes. */
    public void allSaid() {
        changed = false;
    }

    /** Whether there is something that is worth a frame of its own. */
    public boolean isDue() {
        return rendezvousDue || reclaims;
    }

    /** The flags, where a header has them in its first eight bytes. */
    public long flags() {
        return (waited ? (long) Wire.WAITED << 48 : 0) | (reclaims ? (long) Wire.RECLAIM << 48 : 0);
    }

    /** How many of the peer's messages were read in all. */
    public int rendezvousTotal() {
        return rendezvousDone;
    }

    /** A frame with a current header is sent. */
    public void headerSent() {
        rendezvousDue = false;
        waited = false;
        reclaims = false;
    }
}
