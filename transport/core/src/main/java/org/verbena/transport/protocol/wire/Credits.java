package org.verbena.transport.protocol.wire;

import org.jspecify.annotations.Nullable;

/**
 * The arithmetic of flow control for one connection. All counters only grow and wrap. The wire carries the counts
 * themselves, never differences, so that each frame's header is complete and nothing can be lost or counted twice.
 *
 * <p><b>Message frames</b> need the peer's grant. The window is the receive depth less two.
 *
 * <p><b>Control frames</b> use the two receives that are left, and so pass a full window and a peer that does not read.
 * A frame is acknowledged, in whichever frame is next, when its receive is posted again: at once, unless memory is
 * short.
 * <ul>
 *   <li>One STATE, PING, PONG or CLOSE may be unacknowledged.
 * <li>One ACK may be unacknowledged. It is sent when a control frame was processed and no other frame has acknowledged
 * it. ACKs do not ask for an acknowledgement, so silence follows.
 * </ul>
 * An ACK that is needed can always be sent: it answers a control frame that the peer could only send after it had
 * processed our last ACK, and that frame's header says so. Hence the first kind is always acknowledged, whatever the
 * users of both ends do, and grants always get through.
 *
 * <p><b>Length.</b> The peer's receives may become longer once. They are used in the order in which they are posted, so
 * the peer says from which frame of this end on they are. Frames only become longer: what fits now fits later.
 */
public final class Credits {
    /** After so many message frames without one from the peer, this end pushes, and asks before it has to wait. */
    private static final int PUSHED_FRAMES = 8;

    /** Receives kept for control: one for each kind. */
    public static final int CONTROL_RECEIVES = 2;

    // Towards the peer. The window is the most that peer can have granted beyond what was sent.
    private int peerGrant;
    private int sent;
    private int peerGreatestWindow;
    private int unanswered;
    /** The peer knows that this end wants more, and has not granted any since. */
    private boolean asked;

    // How long frames to the peer may be, now and ever.
    private int frameBytes;
    private int longestFrameBytes;
    /** Receives of the peer that this end has used, modulo 2^32: for frames of all classes, and for writes. */
    private int frames;
    /** The peer has announced longer receives, and this end has not come to the first of them. */
    private boolean longerAhead;

    /** 0 until the peer has announced them. */
    private int longerBytes;

    private int longerFrom;

    // From the peer.
    private int granted;
    private int grantSent;
    private int received;
    /** What {@link #received} has to become when grants were asked back: all but one of what was granted by then. */
    private int awaitedReceived;
    /** The peer asks when it wants more. A peer that never asks is sent grants unasked. */
    private boolean peerAsks;
    /** The peer has asked, and was sent no new grant since. */
    private boolean askedByPeer;

    // Control, modulo 2^16.
    private short controlSent;
    private short controlAcknowledged;
    private short controlReceived;
    /** Those whose receives are posted again, so that a header may acknowledge them. */
    private short controlReady;

    private boolean controlOut;
    private short controlOutAt;
    private boolean answerOut;
    private short answerOutAt;
    private boolean answerOwed;
    private short answerOwedTo;

    /** This end's part: the number of receives for messages that are posted. */
    public void openInbound(int window) {
        granted = window;
        grantSent = window;
    }

    /** The peer's part, from its HELLO. */
    public void openOutbound(int window, int greatestWindow, boolean asks) {
        peerGrant = window;
        peerGreatestWindow = greatestWindow;
        peerAsks = asks;
    }

    /** How long the peer's receives are, and may become, from its HELLO. */
    public void openFrames(int bytes, int longestBytes) {
        frameBytes = bytes;
        longestFrameBytes = longestBytes;
    }

    /** How long a frame may ever be, its header included; 0 before HELLO. */
    public int longestFrameBytes() {
        return longestFrameBytes;
    }

    /** How long the next frame may be, its header included. */
    public int frameBytes() {
        if (longerAhead && frames - longerFrom >= 0) {
            longerAhead = false;
            frameBytes = longerBytes;
        }
        return frameBytes;
    }

    /**
     * The peer's receives are longer from one frame on.
     *
     * @param bytes how long
     * @param from the number of this end's frame, modulo 2^32
     * @return the violation, or null
     */
    public @Nullable String peerTakesLonger(int bytes, int from) {
        if (longerBytes != 0) {
            return "it announced longer receives twice";
        }
        if (bytes <= frameBytes || bytes > longestFrameBytes) {
            return "its receives become " + bytes + " bytes long after " + frameBytes + ", with a limit of "
                    + longestFrameBytes;
        }
        longerBytes = bytes;
        longerFrom = from;
        longerAhead = true;
        return null;
    }

    /** A frame of any class was sent, or a write that uses a receive. */
    public void frameSent() {
        frames++;
    }

    /** The number of message frames that may be sent now. */
    public int available() {
        return peerGrant - sent;
    }

    public void messageFrameSent() {
        sent++;
        unanswered++;
    }

    /** How many message frames were sent since the last one came from the peer. */
    public int unanswered() {
        return unanswered;
    }

    /**
     * Whether a frame of the message class asks for more grants: it takes the last one and more has to follow, or this
     * end pushes.
     */
    public boolean asksWithMessage(boolean moreFollows) {
        return peerAsks && (unanswered >= PUSHED_FRAMES || (moreFollows && available() <= 1));
    }

    /**
     * Whether messages that wait for a grant are worth a frame that asks for one.
     *
     * @param waiting whether there are such messages
     */
    public boolean isAskDue(boolean waiting) {
        return peerAsks && waiting && available() <= 0 && !asked;
    }

    /** A frame has asked for more grants. */
    public void hasAsked() {
        asked = true;
    }

    /** Message frames that the peer may still send, as far as this end has decided. */
    public int outstandingGrant() {
        return granted - received;
    }

    /** The next frame promises posted receives to the peer. */
    public void grant(int frames) {
        granted += frames;
    }

    /** The number of grants that this end does not need: all but one. */
    public int returnable() {
        return Math.max(0, available() - 1);
    }

    /** Grants were given back: they count as used. */
    public void giveBack(int frames) {
        sent += frames;
    }

    /**
     * The peer gives grants back: they count as used.
     *
     * @return the violation, or null
     */
    public @Nullable String takeBack(int frames) {
        if (frames < 1 || frames > grantSent - received) {
            return "it returned " + Integer.toUnsignedString(frames) + " grants but has " + (grantSent - received);
        }
        received += frames;
        return null;
    }

    /** The peer is asked to use or return what it is granted now, all but one. */
    public void awaitReturn() {
        awaitedReceived = granted - 1;
    }

    /** Whether it has not done so. */
    public boolean isReturnAwaited() {
        return received - awaitedReceived < 0;
    }

    /** A message frame arrived. */
    public @Nullable String messageFrameReceived() {
        received++;
        unanswered = 0;
        return received - grantSent > 0
                ? "it sent " + Integer.toUnsignedString(received) + " message frames and was granted "
                        + Integer.toUnsignedString(grantSent)
                : null;
    }

    /** The peer asks for more grants. */
    public void peerAsked() {
        askedByPeer = true;
    }

    /** Whether the peer sends more than it gets answers, or does not say. */
    public boolean isMoreWanted() {
        return askedByPeer || !peerAsks;
    }

    /**
     * Whether grants are worth a frame of their own: the peer knows of at most half of what it has, and wants more. To
     * one that gets answers they go with these.
     */
    public boolean grantDue() {
        int unsent = granted - grantSent;
        return isMoreWanted() && unsent > 0 && 2 * unsent >= granted - received;
    }

    public int grantForHeader() {
        return granted;
    }

    public int controlForHeader() {
        return controlReady & 0xffff;
    }

    /**
     * Receives of control frames were posted again: the next header acknowledges these frames.
     *
     * @param missing how many receives are still missing
     * @return whether all that came can be acknowledged
     */
    public boolean controlReposted(int missing) {
        short ready = (short) (controlReceived - missing);
        if ((short) (ready - controlReady) > 0) {
            controlReady = ready;
        }
        return controlReady == controlReceived;
    }

    /** A frame with a current header is sent. */
    public void headerSent() {
        frameSent();
        if (grantSent != granted) {
            grantSent = granted;
            askedByPeer = false;
        }
        answerOwed = answerOwed && !isAnswerReady();
    }

    public boolean canSendControl() {
        return !controlOut;
    }

    public void controlFrameSent() {
        controlOut = true;
        controlOutAt = ++controlSent;
    }

    public boolean mustAnswer() {
        return answerOwed && isAnswerReady();
    }

    private boolean isAnswerReady() {
        return (short) (controlReady - answerOwedTo) >= 0;
    }

    public boolean canAnswer() {
        return !answerOut;
    }

    /** Whether neither end waits for what the other has to say about grants or control frames. */
    public boolean isQuiet() {
        return !controlOut && !answerOwed && !isMoreWanted();
    }

    public void answerSent() {
        answerOut = true;
        answerOutAt = ++controlSent;
    }

    /**
     * A STATE, PING, PONG or CLOSE came. Call it after {@link #headerReceived}.
     *
     * @return the violation, or null
     */
    public @Nullable String controlFrameReceived() {
        if (answerOwed) {
            return "it sent a control frame before the last one was acknowledged";
        }
        answerOwedTo = ++controlReceived;
        answerOwed = true;
        return null;
    }

    /** An ACK came. */
    public void answerReceived() {
        controlReceived++;
    }

    /**
     * Takes what a header says.
     *
     * @return the violation, or null
     */
    public @Nullable String headerReceived(int grant, int control) {
        short newlyAcknowledged = (short) (control - controlAcknowledged);
        if (newlyAcknowledged < 0 || newlyAcknowledged > (short) (controlSent - controlAcknowledged)) {
            return "it acknowledges control frame " + control + " of " + (controlSent & 0xffff);
        }
        int newlyGranted = grant - peerGrant;
        if (newlyGranted < 0 || grant - sent > peerGreatestWindow) {
            return "it grants " + Integer.toUnsignedString(grant) + " message frames after "
                    + Integer.toUnsignedString(peerGrant) + ", with " + Integer.toUnsignedString(sent)
                    + " sent and a window of " + peerGreatestWindow;
        }
        controlAcknowledged = (short) control;
        if (newlyGranted > 0) {
            peerGrant = grant;
            asked = false;
        }
        if (controlOut && (short) (controlAcknowledged - controlOutAt) >= 0) {
            controlOut = false;
        }
        if (answerOut && (short) (controlAcknowledged - answerOutAt) >= 0) {
            answerOut = false;
        }
        return null;
    }

    @Override
    public String toString() {
        return "outbound " + available() + " of " + peerGreatestWindow + ", inbound " + outstandingGrant() + " (unsent "
                + (granted - grantSent) + "), control " + (controlOut ? "out" : "free") + "/"
                + (answerOut ? "out" : "free") + (answerOwed ? ", answer owed" : "");
    }
}
