package org.verbena.transport.protocol.connection;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.framing.ControlFrames;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.rendezvous.RendezvousReceiver;
import org.verbena.transport.protocol.sending.Outbox;
import org.verbena.transport.protocol.state.Lifecycle;
import org.verbena.transport.protocol.state.Lifecycle.Phase;
import org.verbena.transport.protocol.state.Peer;
import org.verbena.transport.protocol.wire.Credits;

/**
 * What a peer must do in time: answer HELLO, CLOSE and PING, finish a message whose memory others wait for, and return
 * grants of shared receives that others wait for, or use them. Also when the connection must be called next. Times are
 * of {@link System#nanoTime()}, so they are compared by their difference; {@link #NONE} is no time.
 */
final class Timeouts {
    static final long NONE = Long.MAX_VALUE;

    /**
     * The delay before another attempt to register memory that the device refused: nothing reports when its limit
     * allows more.
     */
    private static final long MEMORY_RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /**
     * The interval of checks of a message whose memory others wait for: as long as a peer may take for any other part.
     */
    static final long MESSAGE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * How much of a message, or all of its rest, must arrive in {@link #MESSAGE_NANOS} while others wait for memory:
     * 100 KiB/s, far less than any network that RDMA runs on, and enough to transfer the largest message in minutes.
     */
    static final int LEAST_BYTES = RendezvousReceiver.READ_CHUNK_BYTES;

    private final Role role;
    private final MessageOptions options;
    private final Lifecycle life;
    private final Peer peer;
    private final LongSupplier clock;
    private final Credits credits;
    private final ReceiveWindow window;
    private final Inbox inbox;
    private final RendezvousReceiver rendezvous;
    private final Outbox outbox;
    private final ControlFrames control;

    @SuppressWarnings("NullAway.Init") // set by prepare
    private MessageBuffers buffers;

    private long helloNanos = NONE;
    private long closeNanos = NONE;
    private long retryNanos = NONE;
    private long messageNanos = NONE;
    private long returnNanos = NONE;
    /** The question after grants that is to be answered by then. */
    private int question;
    /** What had arrived of messages when the question was put, or this was last looked at. */
    private long bytesAtQuestion;

    private long silentSinceNanos;
    /** When the silent peer was last pinged. */
    private long pingedNanos;

    private boolean watchesSilence;
    /** The deadline that was last reported to the listener. */
    private long reportedNanos = NONE;

    // What had arrived of messages at the last check.
    private long finished;
    private long takenBytes;
    private int owedBytes;
    /** Since then, this end has kept the peer from sending. */
    private boolean withheld;

    Timeouts(
            Role role,
            MessageOptions options,
            Lifecycle life,
            Peer peer,
            LongSupplier clock,
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
        this.clock = clock;
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

    /** When the connection must be called next. */
    long nextNanos() {
        if (!life.isUp()) {
            return life.is(Phase.LINGERING) ? retryNanos : NONE; // a message that has come may wait for its memory
        }
        long nanos = NONE;
        if (life.is(Phase.HANDSHAKE)) {
            nanos = helloNanos;
        } else if (life.isClosing()) {
            nanos = closeNanos;
        } else if (watchesSilence) {
            nanos = silenceNanos();
        }
        return sooner(sooner(nanos, returnNanos), sooner(retryNanos, messageNanos));
    }

    /**
     * When the silent peer is to be pinged, or, if it was, to be given up. It has the whole time for its answer, also
     * if this end's loop was late and pinged long after it was due.
     */
    private long silenceNanos() {
        if (!control.isPinging()) {
            return silentSinceNanos + keepAliveNanos();
        }
        long lateNanos = Math.max(0, pingedNanos - silentSinceNanos - keepAliveNanos());
        return silentSinceNanos + 2 * keepAliveNanos() + lateNanos;
    }

    /** Begins to watch what the peer owes from now on. */
    void update() {
        if (life.is(Phase.HANDSHAKE)) {
            beginHandshake();
        } else if (life.isAgreed()) {
            if (life.isClosing()) {
                beginClosing();
            } else if (options.framing() != Framing.RAW) {
                watchSilence();
            }
        }
        if (watchMessage(inbox.isWithinMessage() || rendezvous.isReading())) {
            see();
        }
        watchReturn();
        if (!rendezvous.isReading() && (!inbox.isReading() || credits.outstandingGrant() <= 0)) {
            withheld = true;
        }
    }

    /** A peer whose messages this end holds up need not use its grants, nor one that has closed. */
    private void watchReturn() {
        int open = life.isClosing() || !inbox.isReading() || rendezvous.isHeldUp() ? 0 : window.openQuestion();
        if (open == 0) {
            returnNanos = NONE;
        } else if (returnNanos == NONE || open != question) {
            awaitReturn();
        }
        question = open;
    }

    private void awaitReturn() {
        returnNanos = after(returnMillis());
        bytesAtQuestion = arrivedNow();
    }

    private long arrivedNow() {
        return window.arrivedBytes() + rendezvous.takenBytes();
    }

    /** Checks what is due: pings a silent peer, and returns why the peer is to be disconnected, or null. */
    @Nullable ConnectionException check(long nowNanos) {
        if (!life.isUp()) {
            return null;
        }
        ConnectionException late = checkMessage(nowNanos);
        if (late != null) {
            return late;
        }
        if (isDue(returnNanos, nowNanos)) {
            if (arrivedNow() - bytesAtQuestion < LEAST_BYTES) {
                return new ConnectionException.TimedOut(
                        peer + " was asked for grants that it does not use, while others waited for them, and has"
                                + " neither returned nor used all but one of them for " + returnMillis() + " ms");
            }
            awaitReturn(); // it uses them, over a slow network, or sends a long message, which needs none
        }
        if (life.is(Phase.HANDSHAKE)) {
            return checkHello(nowNanos);
        }
        if (life.isClosing()) {
            return checkClose(nowNanos);
        }
        return watchesSilence ? checkSilence(nowNanos) : null;
    }

    private @Nullable ConnectionException checkHello(long nowNanos) {
        return isDue(helloNanos, nowNanos)
                ? new ConnectionException.TimedOut(peer + " is connected but did not "
                        + (role == Role.INITIATOR ? "answer HELLO" : "send HELLO") + " within "
                        + options.helloTimeoutMillis() + " ms"
                        + (window.isStarved() ? ", or this end had no memory for receives to answer with" : ""))
                : null;
    }

    private @Nullable ConnectionException checkClose(long nowNanos) {
        if (!isDue(closeNanos, nowNanos)) {
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
        if (nowNanos - silenceNanos() < 0) {
            return null;
        }
        if (control.isPinging()) {
            return new ConnectionException.TimedOut(peer + " did not answer a keepalive and was silent for "
                    + TimeUnit.NANOSECONDS.toMillis(nowNanos - silentSinceNanos) + " ms");
        }
        control.ping(nowNanos, true);
        pingedNanos = nowNanos;
        return null;
    }

    /** Pings for the program. The peer has as long for its answer as for that to a keepalive. */
    void ping(long nonce) {
        control.ping(nonce, false);
        pingedNanos = clock.getAsLong();
    }

    /** A peer that is slow within a message although it may send holds memory that others wait for. */
    private @Nullable ConnectionException checkMessage(long nowNanos) {
        if (!takeMessage(nowNanos)) {
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
                + TimeUnit.NANOSECONDS.toMillis(MESSAGE_NANOS) + " ms");
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

    /** As long as it may take to answer a keepalive. */
    private int returnMillis() {
        return options.keepAliveMillis() > 0
                ? options.keepAliveMillis()
                : (int) TimeUnit.NANOSECONDS.toMillis(MESSAGE_NANOS);
    }

    /** Connected: the peer's part of the handshake is awaited. */
    private void beginHandshake() {
        if (helloNanos == NONE) {
            helloNanos = after(options.helloTimeoutMillis());
        }
    }

    private void beginClosing() {
        if (closeNanos == NONE) {
            closeNanos = after(options.closeTimeoutMillis());
        }
    }

    /** With keepalive, a silent peer is pinged. */
    private void watchSilence() {
        if (!watchesSilence && options.keepAliveMillis() > 0) {
            watchesSilence = true;
            silentSinceNanos = clock.getAsLong();
            pingedNanos = silentSinceNanos;
        }
    }

    /** A frame of the peer has arrived. */
    void frameReceived() {
        if (watchesSilence) {
            silentSinceNanos = clock.getAsLong();
        }
    }

    /** Records whether the peer owes the rest of a message; returns true when it has just begun to. */
    private boolean watchMessage(boolean owed) {
        boolean begins = owed && messageNanos == NONE;
        if (begins) {
            messageNanos = clock.getAsLong() + MESSAGE_NANOS;
        } else if (!owed) {
            messageNanos = NONE;
        }
        return begins;
    }

    /** Whether to check the message's progress now; the next check is due after the same interval. */
    private boolean takeMessage(long nowNanos) {
        boolean due = isDue(messageNanos, nowNanos);
        if (due) {
            messageNanos = nowNanos + MESSAGE_NANOS;
        }
        return due;
    }

    /** Schedules another attempt to get memory. */
    void retry() {
        retryNanos = clock.getAsLong() + MEMORY_RETRY_NANOS;
    }

    /** Schedules a call after this long, or sooner; returns the time now. */
    long wakeAfter(long nanos) {
        long nowNanos = clock.getAsLong();
        retryNanos = sooner(retryNanos, nowNanos + nanos);
        return nowNanos;
    }

    /** Memory is tried again now if that is due, and so are transfers that wait. */
    void endRetry(long nowNanos) {
        if (isDue(retryNanos, nowNanos)) {
            retryNanos = NONE;
        }
    }

    private long keepAliveNanos() {
        return TimeUnit.MILLISECONDS.toNanos(options.keepAliveMillis());
    }

    private static long sooner(long one, long other) {
        if (one == NONE || other == NONE) {
            return one == NONE ? other : one;
        }
        return one - other < 0 ? one : other;
    }

    /**
     * Whether to report this deadline to the listener: it is earlier than the last one reported. It counts as reported
     * then.
     */
    boolean takeNearer(long nanos) {
        if (nanos == NONE || (reportedNanos != NONE && nanos - reportedNanos >= 0)) {
            return false;
        }
        reportedNanos = nanos;
        return true;
    }

    /** The deadline that was reported to the listener has come. */
    void ring() {
        reportedNanos = NONE;
    }

    static boolean isDue(long nanos, long nowNanos) {
        return nanos != NONE && nowNanos - nanos >= 0;
    }

    private long after(int millis) {
        return clock.getAsLong() + TimeUnit.MILLISECONDS.toNanos(millis);
    }
}
