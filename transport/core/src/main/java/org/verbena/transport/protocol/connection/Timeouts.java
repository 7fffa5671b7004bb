package org.verbena.transport.protocol.connection;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.rendezvous.RendezvousReceiver;
import org.verbena.transport.protocol.state.Lifecycle.Phase;

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

    private final Parts parts;
    private final Role role;
    private final MessageOptions options;
    private final LongSupplier clock;

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

    /** The phase for which all that the peer owes is watched. */
    private Phase watchedPhase = Phase.CONNECTING;
    /** Something else began since, or something that the peer owes without a phase of its own is watched. */
    private boolean mayChange;

    // What had arrived of messages at the last check.
    private long finished;
    private long takenBytes;
    private int owedBytes;
    /** Since then, this end has kept the peer from sending. */
    private boolean withheld;

    Timeouts(Parts parts, Role role, MessageOptions options, LongSupplier clock) {
        this.parts = parts;
        this.role = role;
        this.options = options;
        this.clock = clock;
    }

    /** When the connection must be called next. */
    long nextNanos() {
        if (!parts.life.isUp()) {
            // A message that has come may wait for its memory.
            return parts.life.is(Phase.LINGERING) ? retryNanos : NONE;
        }
        long nanos = NONE;
        if (parts.life.is(Phase.HANDSHAKE)) {
            nanos = helloNanos;
        } else if (parts.life.isClosing()) {
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
        if (!parts.control.isPinging()) {
            return silentSinceNanos + keepAliveNanos();
        }
        long lateNanos = Math.max(0, pingedNanos - silentSinceNanos - keepAliveNanos());
        return silentSinceNanos + 2 * keepAliveNanos() + lateNanos;
    }

    /**
     * Whether there may be an earlier deadline than the one that the listener knows: a message that is delivered as it
     * comes, and what is sent, never bring one.
     */
    boolean mayChange() {
        return mayChange
                || !parts.life.is(watchedPhase)
                || !parts.inbox.isEmpty()
                || parts.window.openQuestion() != question;
    }

    /** Begins to watch what the peer owes from now on. */
    void update() {
        watchedPhase = parts.life.phase();
        if (parts.life.is(Phase.HANDSHAKE)) {
            helloNanos = helloNanos == NONE ? after(options.helloTimeoutMillis()) : helloNanos;
        } else if (parts.life.isAgreed()) {
            if (parts.life.isClosing()) {
                closeNanos = closeNanos == NONE ? after(options.closeTimeoutMillis()) : closeNanos;
            } else if (options.framing() != Framing.RAW) {
                watchSilence();
            }
        }
        if (watchMessage(parts.inbox.isWithinMessage() || parts.rendezvous.isReading())) {
            see();
        }
        watchReturn();
        if (!parts.rendezvous.isReading() && (!parts.inbox.isReading() || parts.credits.outstandingGrant() <= 0)) {
            withheld = true;
        }
        mayChange = messageNanos != NONE || returnNanos != NONE;
    }

    /** A peer whose messages this end holds up need not use its grants, nor one that has closed. */
    private void watchReturn() {
        int open = parts.life.isClosing() || !parts.inbox.isReading() || parts.rendezvous.isHeldUp()
                ? 0
                : parts.window.openQuestion();
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
        return parts.window.arrivedBytes() + parts.rendezvous.takenBytes();
    }

    /** Checks what is due: pings a silent peer, and returns why the peer is to be disconnected, or null. */
    @Nullable ConnectionException check(long nowNanos) {
        if (!parts.life.isUp()) {
            return null;
        }
        ConnectionException late = checkMessage(nowNanos);
        if (late != null) {
            return late;
        }
        if (isDue(returnNanos, nowNanos)) {
            if (arrivedNow() - bytesAtQuestion < LEAST_BYTES) {
                return new ConnectionException.TimedOut(
                        parts.peer + " was asked for grants that it does not use, while others waited for them, and has"
                                + " neither returned nor used all but one of them for " + returnMillis() + " ms");
            }
            awaitReturn(); // it uses them, over a slow network, or sends a long message, which needs none
        }
        if (parts.life.is(Phase.HANDSHAKE)) {
            return checkHello(nowNanos);
        }
        if (parts.life.isClosing()) {
            return checkClose(nowNanos);
        }
        return watchesSilence ? checkSilence(nowNanos) : null;
    }

    private @Nullable ConnectionException checkHello(long nowNanos) {
        return isDue(helloNanos, nowNanos)
                ? new ConnectionException.TimedOut(parts.peer + " is connected but did not "
                        + (role == Role.INITIATOR ? "answer HELLO" : "send HELLO") + " within "
                        + options.helloTimeoutMillis() + " ms"
                        + (parts.window.isStarved() ? ", or this end had no memory for receives to answer with" : ""))
                : null;
    }

    private @Nullable ConnectionException checkClose(long nowNanos) {
        if (!isDue(closeNanos, nowNanos)) {
            return null;
        }
        if (parts.life.hasAnswered()) {
            parts.peer.disconnect();
            return null;
        }
        return new ConnectionException.TimedOut(parts.peer + " did not accept what was queued and answer CLOSE within "
                + options.closeTimeoutMillis() + " ms; " + parts.outbox.queuedBytes()
                + " bytes of messages may not have been delivered");
    }

    private @Nullable ConnectionException checkSilence(long nowNanos) {
        if (nowNanos - silenceNanos() < 0) {
            return null;
        }
        if (parts.control.isPinging()) {
            return new ConnectionException.TimedOut(parts.peer + " did not answer a keepalive and was silent for "
                    + TimeUnit.NANOSECONDS.toMillis(nowNanos - silentSinceNanos) + " ms");
        }
        parts.control.ping(nowNanos, true);
        pingedNanos = nowNanos;
        return null;
    }

    /** Pings for the program. The peer has as long for its answer as for that to a keepalive. */
    void ping(long nonce) {
        mayChange = true;
        parts.control.ping(nonce, false);
        pingedNanos = clock.getAsLong();
    }

    /** A peer that is slow within a message although it may send holds memory that others wait for. */
    private @Nullable ConnectionException checkMessage(long nowNanos) {
        if (!takeMessage(nowNanos)) {
            return null;
        }
        boolean slow =
                !withheld && finished == finishedNow() && takenNow() - takenBytes < Math.min(LEAST_BYTES, owedBytes);
        boolean fragments = parts.inbox.isMessageInMemory();
        see();
        if (!slow || !(fragments || parts.rendezvous.isReading()) || !parts.buffers.isMessageAwaited()) {
            return null;
        }
        return new ConnectionException.TimedOut(parts.peer
                + (fragments
                        ? " sent too little of a message, " + parts.inbox.expectedBytes() + " bytes before its end"
                        : " was too slow to answer reads of a message")
                + ", while others waited for memory to receive into: less than " + LEAST_BYTES + " bytes in "
                + TimeUnit.NANOSECONDS.toMillis(MESSAGE_NANOS) + " ms");
    }

    private void see() {
        finished = finishedNow();
        takenBytes = takenNow();
        owedBytes = parts.rendezvous.isReading() ? LEAST_BYTES : parts.inbox.expectedBytes();
        withheld = false;
    }

    private long finishedNow() {
        return parts.inbox.finished() + parts.rendezvous.done();
    }

    private long takenNow() {
        return parts.inbox.takenBytes() + parts.rendezvous.takenBytes();
    }

    /** As long as it may take to answer a keepalive. */
    private int returnMillis() {
        return options.keepAliveMillis() > 0
                ? options.keepAliveMillis()
                : (int) TimeUnit.NANOSECONDS.toMillis(MESSAGE_NANOS);
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
        mayChange = true;
        retryNanos = clock.getAsLong() + MEMORY_RETRY_NANOS;
    }

    /** Schedules a call after this long, or sooner; returns the time now. */
    long wakeAfter(long nanos) {
        mayChange = true;
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
        mayChange = true;
        reportedNanos = NONE;
    }

    static boolean isDue(long nanos, long nowNanos) {
        return nanos != NONE && nowNanos - nanos >= 0;
    }

    private long after(int millis) {
        return clock.getAsLong() + TimeUnit.MILLISECONDS.toNanos(millis);
    }
}
