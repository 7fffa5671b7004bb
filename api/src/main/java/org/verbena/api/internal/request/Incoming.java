package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** An inbound message, and the methods that answer it. Any thread. */
public final class Incoming {
    /** No handler has it. */
    private static final int ARRIVED = 0;

    private static final int BEGUN = 1;

    /** It has its answer, or gets none. */
    private static final int OVER = 2;

    private final Messenger messenger;
    private final long correlation;
    private final boolean request;
    /** The peer knows that it may be refused. */
    private final boolean refusable;

    private final long arrivedNanos;
    /** How long the peer waits from then on; {@link Long#MAX_VALUE} if it did not say. */
    private final long timeNanos;

    /** Of a request: from {@link #ARRIVED} to {@link #BEGUN} to {@link #OVER}, none of which need be reached. */
    private final AtomicInteger state = new AtomicInteger(ARRIVED);

    /** Whether other threads may find it among the {@linkplain OpenRequests open ones}. Written by the loop. */
    private volatile boolean listed;

    /** The message that a handler on a virtual thread has now. Written by that thread. */
    private volatile @Nullable ByteBuf handled;

    private Incoming(
            Messenger messenger,
            long correlation,
            boolean request,
            boolean refusable,
            long arrivedNanos,
            long timeNanos) {
        this.messenger = messenger;
        this.correlation = correlation;
        this.request = request;
        this.refusable = refusable;
        this.arrivedNanos = arrivedNanos;
        this.timeNanos = timeNanos;
    }

    /** Of a message that is not a request. */
    static Incoming ofMessage(Messenger messenger) {
        return new Incoming(messenger, 0, false, false, 0, Long.MAX_VALUE);
    }

    /**
     * Of a request whose peer does not say how long it waits.
     *
     * @param arrivedNanos a time of {@link System#nanoTime()}
     */
    static Incoming ofRequest(Messenger messenger, long correlation, long arrivedNanos) {
        return new Incoming(messenger, correlation, true, false, arrivedNanos, Long.MAX_VALUE);
    }

    /**
     * Of a request with a deadline, or with none.
     *
     * @param arrivedNanos a time of {@link System#nanoTime()}
     * @param timeNanos how long the peer waits from then on; {@link Long#MAX_VALUE} without a deadline
     */
    static Incoming ofTimedRequest(Messenger messenger, long correlation, long arrivedNanos, long timeNanos) {
        return new Incoming(messenger, correlation, true, true, arrivedNanos, timeNanos);
    }

    /** The object by which the program sees it; null at first. */
    private @Nullable Object seen;

    public boolean isRequest() {
        return request;
    }

    /**
     * Answers: the first call for a request sends its reply, every other call a message of its own.
     *
     * @param message its ownership is taken
     * @throws IllegalStateException it is the handler's own message, and was not retained
     */
    public Future<Void> send(ByteBuf message) {
        messenger.handlers().checkKept(this, message);
        return answer(message);
    }

    /** Answers with a copy. */
    public CompletableFuture<Void> send(byte[] message) {
        ByteBuf copy;
        try {
            copy = messenger.outgoing().copy(message);
        } catch (RuntimeException | Error noMemory) {
            return messenger.completable(cannotAnswer(noMemory));
        }
        return messenger.completable(answer(copy));
    }

    /** Answers with a copy of what remains. */
    public CompletableFuture<Void> send(ByteBuffer message) {
        ByteBuf copy;
        try {
            copy = messenger.outgoing().copy(message);
        } catch (RuntimeException | Error noMemory) {
            return messenger.completable(cannotAnswer(noMemory));
        }
        return messenger.completable(answer(copy));
    }

    private Future<Void> answer(@Nullable ByteBuf message) {
        if (!finish()) {
            return messenger.outgoing().message(message);
        }
        Future<Void> reply = messenger.outgoing().reply(correlation, message, arrivedNanos);
        over();
        return reply;
    }

    /** There is no memory for the message: if it is the reply, the request fails. */
    private Future<Void> cannotAnswer(Throwable cause) {
        if (finish()) {
            messenger.outgoing().replyFailed(correlation, cause);
            over();
        }
        return messenger.notifier().newFailedFuture(cause);
    }

    /** How long the peer still waits; {@link Long#MAX_VALUE} if it does not say, or for no reply. */
    public long remainingNanos() {
        return timeNanos == Long.MAX_VALUE
                ? Long.MAX_VALUE
                : Math.max(0, timeNanos - (System.nanoTime() - arrivedNanos));
    }

    /** Whether the peer waits no longer. */
    boolean isExpired() {
        return timeNanos != Long.MAX_VALUE && System.nanoTime() - arrivedNanos >= timeNanos;
    }

    /** When the first part of the request arrived. */
    long arrivedNanos() {
        return arrivedNanos;
    }

    public Channel channel() {
        return messenger.channel();
    }

    /** Sends the handler's failure to the peer, if it still waits for a reply. */
    void fail(Throwable cause) {
        if (finish()) {
            messenger.outgoing().failure(correlation, cause);
            over();
        }
    }

    /** Sends a refusal to the peer, because the server is overloaded, if the peer still waits for a reply. */
    void refuse(long retryAfterNanos) {
        if (finish()) {
            messenger.outgoing().overloaded(correlation, refusable, retryAfterNanos);
            over();
        }
    }

    /** Sends a refusal to the peer, because this end is leaving, unless a handler has begun. */
    void refuseLeaving() {
        if (state.compareAndSet(ARRIVED, OVER)) {
            messenger.outgoing().refusedLeaving(correlation);
            over();
        }
    }

    /** The handler of a request begins, unless the request is over. */
    boolean begin() {
        return state.compareAndSet(ARRIVED, BEGUN);
    }

    /** Nobody waits for the request. Returns whether its handler will never begin because of this. */
    boolean abandon() {
        int before = state.getAndSet(OVER);
        if (before != OVER) {
            over();
        }
        return before == ARRIVED;
    }

    /** Whether the caller is to answer it: true once for a request, and never for a message. */
    private boolean finish() {
        return request && state.getAndSet(OVER) != OVER;
    }

    private void over() {
        if (listed) {
            messenger.handlers().over(this);
        }
    }

    boolean isOver() {
        return state.get() == OVER;
    }

    long correlation() {
        return correlation;
    }

    /** From now on others may find it. On the loop. */
    void setListed() {
        listed = true;
    }

    void setHandled(@Nullable ByteBuf message) {
        handled = message;
    }

    @Nullable ByteBuf handled() {
        return handled;
    }

    /**
     * The object by which the program sees it. Messages that are handled one after another on a loop share one object.
     */
    public <T> T seenAs(Class<T> type, Function<Incoming, T> maker) {
        Object known = seen;
        if (!type.isInstance(known)) {
            known = maker.apply(this);
            seen = known;
        }
        return type.cast(known);
    }
}
