package org.verbena.transport.protocol;

import org.verbena.transport.Framing;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.Lifecycle.Phase;
import org.verbena.transport.ConnectionException;

/**
 * Supervises what a peer must do in time: answer HELLO, CLOSE and PING, and finish a message whose memory others wait
 * for.
 */
final class Timeouts {
    /**
     * What must come of a message, or all of its rest, in {@link Deadlines#MESSAGE_NANOS} while others wait for memory:
     * 100 KiB/s, far less than any network that RDMA
     * runs on gives, and enough that the largest message is through in minutes.
     */
    static final int LEAST_BYTES = RendezvousReceiver.READ_CHUNK_BYTES;

    private final MessageConnection.Role role;
    private final MessageOptions options;
    private final Lifecycle life;
    private final Peer peer;
    private final Deadlines deadlines;
    private final Credits credits;
    private final ReceiveWindow window;
    private final Inbox inbox;
    private final RendezvousReceiver rendezvous;
    private final Outbox outbox;
    private final ControlFrames control;

    @SuppressWarnings("NullAway.Init") // set by prepare
    private MessageBuffers buffers;

    // What had come of messages at the last check.
    private long finished;
    private long takenBytes;
    private int owedBytes;
    /** Since then, this end has kept the peer from sending. */
    private boolean withheld;

    Timeouts(
            MessageConnection.Role role,
            MessageOptions options,
            Lifecycle life,
            Peer peer,
            Deadlines deadlines,
            Credits credits,
            ReceiveWindow window,
            Inbox inbox,
            RendezvousReceiver rendezvous,
            Outbox outbox,
            ControlFrames control) {
        this.role = role;
        this.options = options;
        this.life = life;
        this.peer = peer;
        this.deadlines = deadlines;
        this.credits = credits;
        this.window = window;
        this.inbox = inbox;
        this.rendezvous = rendezvous;
        this.outbox = outbox;
        this.control = control;
    }

    void prepare(MessageBuffers memory) {
        buffers = memory;
    }

    /** The time of the next check. */
    long nextNanos() {
        return life.isUp()
                ? deadlines.next(life.is(Phase.HANDSHAKE), life.isClosing(), control.isPinging())
                : Deadlines.NONE;
    }

    /** Begins to watch what the peer owes from now on. */
    void update() {
        if (life.is(Phase.HANDSHAKE)) {
            deadlines.beginHandshake();
        } else if (life.isAgreed()) {
            if (life.isClosing()) {
                deadlines.beginClosing();
            } else if (options.framing() != Framing.RAW) {
                deadlines.watchSilence();
            }
        }
        if (deadlines.watchMessage(inbox.isWithinMessage() || rendezvous.isReading())) {
            see();
        }
        if (!rendezvous.isReading() && (!inbox.isReading() || credits.outstandingGrant() <= 0)) {
            withheld = true;
        }
    }

    /** Checks what is due: pings a silent peer, and returns why the peer is to be disconnected, or null. */
    @Nullable ConnectionException check(long nowNanos) {
        ConnectionException late = checkMessage(nowNanos);
        if (late != null) {
            return late;
        }
        if (life.is(Phase.HANDSHAKE)) {
            return checkHello(nowNanos);
        }
        if (life.isClosing()) {
            return checkClose(nowNanos);
        }
        return deadlines.watchesSilence() ? checkSilence(nowNanos) : null;
    }

    private @Nullable ConnectionException checkHello(long nowNanos) {
        return deadlines.isHelloLate(nowNanos)
                ? new ConnectionException.TimedOut(peer + " is connected but did not "
                        + (role == MessageConnection.Role.INITIATOR ? "answer HELLO" : "say HELLO") + " within "
                        + options.helloTimeoutMillis() + " ms"
                        + (window.isStarved() ? ", or this end had no memory for receives to answer with" : ""))
                : null;
    }

    private @Nullable ConnectionException checkClose(long nowNanos) {
        if (!deadlines.isCloseLate(nowNanos)) {
            return null;
        }
        if (life.hasAnswered()) {
            peer.disconnect();
            return null;
        }
        return new ConnectionException.TimedOut(peer + " did not accept what was queued and answer CLOSE within "
                + options.closeTimeoutMillis() + " ms; " + outbox.queuedBytes()
                + " bytes of messages may not have been delivered");
    }

    private @Nullable ConnectionException checkSilence(long nowNanos) {
        long silentNanos = deadlines.silentNanos(nowNanos);
        if (silentNanos >= 2 * deadlines.keepAliveNanos()) {
            return new ConnectionException.TimedOut(peer + " did not answer a keepalive and was silent for "
                    + TimeUnit.NANOSECONDS.toMillis(silentNanos) + " ms");
        }
        if (silentNanos >= deadlines.keepAliveNanos() && !control.isPinging()) {
            control.ping(nowNanos, true);
        }
        return null;
    }

    /** A peer that is slow within a message although it may send holds memory that others wait for. */
    private @Nullable ConnectionException checkMessage(long nowNanos) {
        if (!deadlines.takeMessage(nowNanos)) {
            return null;
        }
        boolean slow =
                !withheld && finished == finishedNow() && takenNow() - takenBytes < Math.min(LEAST_BYTES, owedBytes);
        boolean fragments = inbox.isMessageInMemory();
        see();
        if (!slow || !(fragments || rendezvous.isReading()) || !buffers.isMessageAwaited()) {
            return null;
        }
        return new ConnectionException.TimedOut(peer
                + (fragments
                        ? " sent too little of a message, " + inbox.expectedBytes() + " bytes before its end"
                        : " was too slow to answer reads of a message")
                + ", while others waited for memory to receive into: less than " + LEAST_BYTES + " bytes in "
                + TimeUnit.NANOSECONDS.toMillis(Deadlines.MESSAGE_NANOS) + " ms");
    }

    private void see() {
        finished = finishedNow();
        takenBytes = takenNow();
        owedBytes = rendezvous.isReading() ? LEAST_BYTES : inbox.expectedBytes();
        withheld = false;
    }

    private long finishedNow() {
        return inbox.finished() + rendezvous.done();
    }

    private long takenNow() {
        return inbox.takenBytes() + rendezvous.takenBytes();
    }
}
