package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A message that arrived, as seen by whoever answers it. All methods may be called on any thread. */
public final class Exchange {
    private final Messenger messenger;
    private final long correlation;
    private final boolean request;
    /** Nobody handles it: it is a request that is answered when the messages in front of it have been handled. */
    private final boolean fence;

    /** The peer knows that it may be refused. */
    private final boolean refusable;

    private final long arrivedNanos;
    /** How long the peer waits from then on; {@link Long#MAX_VALUE} if it did not say. */
    private final long timeNanos;

    private final AtomicBoolean replied = new AtomicBoolean();

    /** The message that a handler on a virtual thread has now. Written by that thread. */
    private volatile @Nullable ByteBuf handled;

    private Exchange(
            Messenger messenger,
            long correlation,
            boolean request,
            boolean fence,
            boolean refusable,
            long arrivedNanos,
            long timeNanos) {
        this.messenger = messenger;
        this.correlation = correlation;
        this.request = request;
        this.fence = fence;
        this.refusable = refusable;
        this.arrivedNanos = arrivedNanos;
        this.timeNanos = timeNanos;
    }

    /** Of a message that is not a request. */
    static Exchange ofMessage(Messenger messenger) {
        return new Exchange(messenger, 0, false, false, false, 0, Long.MAX_VALUE);
    }

    /** Of a fence, which has its turn as a message does. */
    static Exchange ofFence(Messenger messenger, long correlation) {
        return new Exchange(messenger, correlation, false, true, false, 0, Long.MAX_VALUE);
    }

    /**
     * Of a request whose peer does not say how long it waits.
     *
     * @param arrivedNanos a time of {@link System#nanoTime()}
     */
    static Exchange ofRequest(Messenger messenger, long correlation, long arrivedNanos) {
        return new Exchange(messenger, correlation, true, false, false, arrivedNanos, Long.MAX_VALUE);
    }

    /**
     * Of a request with a deadline, or with none.
     *
     * @param arrivedNanos a time of {@link System#nanoTime()}
     * @param timeNanos how long the peer waits from then on; {@link Long#MAX_VALUE} without a deadline
     */
    static Exchange ofTimedRequest(Messenger messenger, long correlation, long arrivedNanos, long timeNanos) {
        return new Exchange(messenger, correlation, true, false, true, arrivedNanos, timeNanos);
    }

    /**
     * Tells whether the peer waits for a reply.
     *
     * @return true if it called {@code request}
     */
    public boolean isRequest() {
        return request;
    }

    /**
     * Answers: the first call for a request sends its reply, every other call a message of its own. If the reply cannot
     * be sent, the request fails at its client at once, as if the handler had thrown.
     *
     * @param message its ownership is taken; for the message that the handler was given, pass {@code message.retain()}
     * @return done when the send has completed. A message that is no reply fails with {@link SendLimitException} if too
     *     much {@linkplain RdmaServer.Builder#maxPending waits to be sent}
     * @throws IllegalStateException it is the handler's own message, and was not retained
     */
    public Future<Void> send(ByteBuf message) {
        messenger.checkKept(this, message);
        return answer(message);
    }

    /**
     * Answers, as {@link #send(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(byte[] message) {
        ByteBuf copy;
        try {
            copy = messenger.copy(message);
        } catch (RuntimeException | Error noMemory) {
            return messenger.completable(cannotAnswer(noMemory));
        }
        return messenger.completable(answer(copy));
    }

    /**
     * Answers, as {@link #send(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(ByteBuffer message) {
        ByteBuf copy;
        try {
            copy = messenger.copy(message);
        } catch (RuntimeException | Error noMemory) {
            return messenger.completable(cannotAnswer(noMemory));
        }
        return messenger.completable(answer(copy));
    }

    private Future<Void> answer(@Nullable ByteBuf message) {
        return request && replied.compareAndSet(false, true)
                ? messenger.reply(correlation, message, arrivedNanos)
                : messenger.sendMessage(message);
    }

    /** There is no memory for the message: if it is the reply, the request fails. */
    private Future<Void> cannotAnswer(Throwable cause) {
        if (request && replied.compareAndSet(false, true)) {
            messenger.replyFailed(correlation, cause);
        }
        return messenger.notifier().newFailedFuture(cause);
    }

    /**
     * Tells how long the peer still waits for the reply. Its time began when the first part of the request arrived
     * here; how long that was on its way is not known.
     *
     * @return in nanoseconds; 0 when its time is over; {@link Long#MAX_VALUE} for a message that is not a request, and
     *     for a request of a peer that does not say how long it waits
     */
    public long remainingNanos() {
        return timeNanos == Long.MAX_VALUE
                ? Long.MAX_VALUE
                : Math.max(0, timeNanos - (System.nanoTime() - arrivedNanos));
    }

    /**
     * The timeout for a request that the handler makes of its own to answer this one: what remains of this one's time.
     *
     * <pre>{@code
     * byte[] part = backend.request(question, exchange.remaining(Duration.ofSeconds(5))).get();
     * }</pre>
     *
     * @param most for a peer that does not say how long it waits, and for one that waits longer; more than zero
     * @return at least a nanosecond, so that the request fails with its timeout if this one's time is over
     * @throws IllegalArgumentException {@code most} is not positive
     */
    public Duration remaining(Duration most) {
        long mostNanos = ShortForm.positive("most", most);
        return Duration.ofNanos(Math.max(1, Math.min(mostNanos, remainingNanos())));
    }

    /** Whether the peer waits no longer. */
    boolean isExpired() {
        return timeNanos != Long.MAX_VALUE && System.nanoTime() - arrivedNanos >= timeNanos;
    }

    /** When the first part of the request arrived. */
    long arrivedNanos() {
        return arrivedNanos;
    }

    /**
     * Returns the connection that the message arrived on, for one-sided operations and all else.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return messenger.channel();
    }

    boolean isFence() {
        return fence;
    }

    /** Answers a fence. */
    void pass() {
        messenger.send(Messenger.REPLY, correlation, Unpooled.EMPTY_BUFFER);
    }

    /** Tells the peer that the handler failed, if it still waits for a reply. */
    void fail(Throwable cause) {
        if (request && replied.compareAndSet(false, true)) {
            messenger.sendFailure(correlation, cause);
        }
    }

    /** Tells the peer that the server is overloaded, if it still waits for a reply. */
    void refuse(long retryAfterNanos) {
        if (request && replied.compareAndSet(false, true)) {
            messenger.sendOverloaded(correlation, refusable, retryAfterNanos);
        }
    }

    void setHandled(@Nullable ByteBuf message) {
        handled = message;
    }

    @Nullable ByteBuf handled() {
        return handled;
    }
}
