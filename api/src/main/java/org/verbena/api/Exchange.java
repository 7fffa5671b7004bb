package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.verbena.api.internal.request.Incoming;
import org.verbena.api.internal.request.Serving;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.transport.SendLimitException;

/** A message that arrived, as seen by whoever answers it. All methods may be called on any thread. */
public final class Exchange {
    private final Incoming incoming;

    private Exchange(Incoming incoming) {
        this.incoming = incoming;
    }

    /** A program's handler as connections call it. */
    static Serving.Handler handlerOf(MessageHandler handler) {
        return (incoming, message) -> handler.onMessage(incoming.seenAs(Exchange.class, Exchange::new), message);
    }

    /**
     * Tells whether the peer waits for a reply.
     *
     * @return true if it called {@code request}
     */
    public boolean isRequest() {
        return incoming.isRequest();
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
        return incoming.send(message);
    }

    /**
     * Answers, as {@link #send(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(byte[] message) {
        return incoming.send(message);
    }

    /**
     * Answers, as {@link #send(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(ByteBuffer message) {
        return incoming.send(message);
    }

    /**
     * Tells how long the peer still waits for the reply. Its time began when the first part of the request arrived
     * here; how long that was on its way is not known.
     *
     * @return in nanoseconds; 0 when its time is over; {@link Long#MAX_VALUE} for a message that is not a request, and
     *     for a request of a peer that does not say how long it waits
     */
    public long remainingNanos() {
        return incoming.remainingNanos();
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

    /**
     * Returns the connection that the message arrived on, for one-sided operations and all else.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return (RdmaChannel) incoming.channel();
    }
}
