package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.request.Incoming;
import org.verbena.api.internal.request.Serving;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.service.MessageStream;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.Method;
import org.verbena.api.service.ValueStream;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.SendLimitException;

/** An inbound message, for the handler that answers it. All methods may be called on any thread. */
public final class Exchange {
    private final Incoming incoming;

    private Exchange(Incoming incoming) {
        this.incoming = incoming;
    }

    /** A program's handler as connections call it, with what stands around it, the outermost first. */
    static Serving.Handler handlerOf(MessageHandler handler, List<ServerInterceptor> interceptors) {
        MessageHandler requests = handler instanceof Methods ? handler : withoutMethods(handler);
        for (ServerInterceptor each : interceptors.reversed()) {
            MessageHandler next = requests;
            requests = (exchange, message) -> each.onRequest(exchange, message, next);
        }
        MessageHandler outermost = requests;
        return (incoming, message) -> {
            MessageHandler first = incoming.isRequest() ? outermost : handler;
            first.onMessage(incoming.seenAs(Exchange.class, Exchange::new), message);
        };
    }

    /** The message of a call is not for a handler of messages. */
    private static MessageHandler withoutMethods(MessageHandler handler) {
        return (exchange, message) -> {
            if (exchange.method() == null) {
                handler.onMessage(exchange, message);
            } else {
                exchange.refuse(RequestException.Refused.Reason.UNKNOWN, "this end has no methods");
            }
        };
    }

    /**
     * Returns whether the peer waits for a reply.
     *
     * @return true if it called {@code request}
     */
    public boolean isRequest() {
        return incoming.isRequest();
    }

    /**
     * Returns what the request calls.
     *
     * @return service and method, as {@code orders/place}, which this end need not have; null for a request without a
     *     method, and for a message
     */
    public @Nullable String method() {
        return incoming.headers().method();
    }

    /**
     * Returns what the client has sent beside the message ({@code RequestOptions.withMetadata}).
     *
     * @return empty if there is nothing
     */
    public Metadata metadata() {
        return incoming.headers().metadata();
    }

    /**
     * Adds metadata to the reply that is sent later. It replaces entries of the same name that were added before. Of a
     * {@link #stream()}, what was added before the first message was given to {@code send} goes with that message, and
     * what is added afterwards goes with the end. A client whose request fails does not get it. Does nothing for a
     * message that is not a request.
     *
     * @param more what to add
     * @throws IllegalArgumentException all together would be over the limits of {@link Metadata}
     */
    public void addReplyMetadata(Metadata more) {
        incoming.addReplyMetadata(more);
    }

    /**
     * Returns the messages of a request that was begun with {@code client.stream}. Its end answers the request; a
     * {@link #reply} instead is its only message from here. Until the handler calls this, the client can send no
     * messages. A handler that waits for them needs {@linkplain RdmaServer.Builder#virtualThreads virtual threads}.
     *
     * @return always the same
     * @throws IllegalStateException it is a message or a request of another kind
     */
    public MessageStream stream() {
        return incoming.stream();
    }

    /**
     * Returns whether messages may follow the request.
     *
     * @return true if it was begun with {@code client.stream}, so that there is a {@link #stream()}
     */
    public boolean isStream() {
        return incoming.isStream();
    }

    /** The messages of a call, as the handler of its method sees them; the first one stays the caller's. */
    <Q, R> ValueStream<R, Q> stream(Method<Q, R> method, ByteBuf message) {
        return incoming.stream(method.reply(), method.request(), message);
    }

    /**
     * Sends the reply to a request: once. If it cannot be sent, the request fails at its client at once, as if the
     * handler had thrown, and it is logged here.
     *
     * @param message its ownership is taken; for the message that the handler was given, pass {@code message.retain()}
     * @return done when the reply is on its way: the adapter was given a copy of it, or has sent it. If it is lost
     *     after that, the connection ends, and the client knows. It fails with {@link IllegalStateException}, which is
     *     logged here too, if the message is not a request or is answered already. Nothing is sent if nobody waits for
     *     the reply: then it is cancelled, or fails with {@link org.verbena.transport.ConnectionException} if the
     *     connection is gone. A reply that is sent just when the timeout is over may succeed here all the same
     * @throws IllegalStateException it is the handler's own message, and was not retained
     */
    public Future<Void> reply(ByteBuf message) {
        return incoming.reply(message);
    }

    /**
     * Sends the reply to a request, as {@link #reply(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> reply(byte[] message) {
        return incoming.reply(message);
    }

    /**
     * Sends the reply to a request, as {@link #reply(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> reply(ByteBuffer message) {
        return incoming.reply(message);
    }

    /**
     * Sends a message of its own to the peer, which is never a reply: on this connection, and as often as the program
     * likes. If the client of a client's handler leaves the connection, as for a better rung, the message goes over
     * another of its connections.
     *
     * @param message its ownership is taken; for the message that the handler was given, pass {@code message.retain()}
     * @return done when the send has completed. It fails with {@link SendLimitException} if too much {@linkplain
     *     RdmaServer.Builder#maxPending waits to be sent}
     * @throws IllegalStateException it is the handler's own message, and was not retained
     */
    public Future<Void> send(ByteBuf message) {
        return incoming.send(message);
    }

    /**
     * Sends a message of its own, as {@link #send(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(byte[] message) {
        return incoming.send(message);
    }

    /**
     * Sends a message of its own, as {@link #send(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(ByteBuffer message) {
        return incoming.send(message);
    }

    /**
     * Fails the request, as if the handler had thrown this: for handlers that answer after they have returned. A {@link
     * RequestFailure} reaches the client with its code, words and payload. Anything else is logged here, and fails at
     * the client with {@link RequestException.Failed}. Does nothing to a request that is answered; for a message that
     * is not a request it only logs.
     *
     * @param cause why
     */
    public void fail(Throwable cause) {
        incoming.fail(Objects.requireNonNull(cause, "the cause is null"));
    }

    /**
     * Refuses the request, of which nothing has been done: it fails at the client with {@link
     * RequestException.Refused}. Does nothing to a request that is answered, nor to a message that is not a request.
     *
     * @param reason why
     * @param words for people; the client gets them
     */
    public void refuse(RequestException.Refused.Reason reason, String words) {
        incoming.refuse(
                Objects.requireNonNull(reason, "the reason is null"),
                Objects.requireNonNull(words, "the words are null"));
    }

    /**
     * Returns how long the peer still waits for the reply. The time began when the first part of the request arrived
     * here; the time on the network before that is not known.
     *
     * @return in nanoseconds; 0 when its time is over; {@link Long#MAX_VALUE} for a message that is not a request, and
     *     for a request of a peer that does not say how long it waits
     */
    public long remainingNanos() {
        return incoming.remainingNanos();
    }

    /**
     * Returns the timeout for a request that is sent in order to answer this one: the remaining time of this one.
     * Requests that the handler sends on its own thread have that limit anyway.
     *
     * <pre>{@code
     * byte[] part = backend.request(question, exchange.remaining(Duration.ofSeconds(5))).get();
     * }</pre>
     *
     * @param max the upper limit, also for a peer that does not say how long it waits; more than zero
     * @return at least a nanosecond, so that the new request times out if this one's time is over
     * @throws IllegalArgumentException {@code max} is not positive
     */
    public Duration remaining(Duration max) {
        long maxNanos = ShortForm.positive("most", max);
        return Duration.ofNanos(Math.max(1, Math.min(maxNanos, remainingNanos())));
    }

    /**
     * Tells whether nobody waits for the reply: the client has cancelled its request, its timeout is over, or its
     * connection is gone. A handler that works for long asks now and then, and ends if it is so.
     *
     * @return false for a message that is not a request, and for a request that is answered
     */
    public boolean isCancelled() {
        return incoming.isCancelled();
    }

    /**
     * Runs an action if the request is cancelled before it is answered: once, on the connection's event loop, where it
     * must not block. If it {@linkplain #isCancelled() is cancelled} already, the action runs at once on this thread.
     * What it throws is logged. For a message that is not a request it never runs.
     *
     * <p>{@link RdmaServer.Builder#interruptCancelled(boolean)} interrupts a handler that waits.
     *
     * @param action what to do
     */
    public void onCancel(Runnable action) {
        incoming.onCancel(Objects.requireNonNull(action, "the action is null"));
    }

    /**
     * Runs an action when the request has its answer, or nobody waits for that any more: once, on the thread that
     * answers it or on the connection's event loop; it must not block. What it throws is logged. Several actions run in
     * the reverse of the order in which they were added. One that is added after the end never runs, nor does one for a
     * message that is not a request.
     *
     * @param action gets null for a reply; else what the handler has failed with, {@link RequestException.Refused} for
     *     a refusal, or a {@link java.util.concurrent.CancellationException} if the request was cancelled
     */
    public void onEnd(Consumer<@Nullable Throwable> action) {
        incoming.onEnd(Objects.requireNonNull(action, "the action is null"));
    }

    /**
     * Returns the client that has sent the message, to send it further ones at any time or to add it to a {@link
     * ClientGroup}.
     *
     * @return always the same for one connection
     * @throws IllegalStateException the message comes from a server: this is the handler of a client
     */
    public ConnectedClient client() {
        ConnectedClient client = ConnectedClient.find(channel());
        if (client == null) {
            throw new IllegalStateException("the message comes from "
                    + channel().remoteAddress() + ", no client of a" + " server here: use send");
        }
        return client;
    }

    /**
     * Returns the client's token for memory of this server, to be sent to it: see {@link
     * ServerMemory#tokenFor(AbstractRdmaChannel)}.
     *
     * @param memory that this client may use from now on
     * @return the token that fits the device which carries the client's connection
     * @throws IllegalArgumentException the message comes from a server: this is the handler of a client
     * @throws IllegalStateException the memory, or the server with all its connections, is closed
     * @throws UnsupportedOperationException the memory is for atomics only, and the connection has none
     * @throws org.verbena.transport.RdmaException the device does not register the memory; the message says why
     */
    public RemoteMemory token(ServerMemory memory) {
        return memory.tokenFor(channel());
    }

    /**
     * Returns the connection that the message arrived on, for one-sided operations and everything else.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return (RdmaChannel) incoming.channel();
    }
}
