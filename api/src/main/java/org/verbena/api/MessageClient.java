package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.MessageStream;
import org.verbena.api.service.Method;
import org.verbena.api.service.Reply;
import org.verbena.api.service.ValueStream;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.SendLimitException;

/**
 * Sends messages and requests. Program against this interface, and tests can substitute a client that needs no network.
 * {@link RdmaClient} says what its types and threads are.
 *
 * <p>A request that a handler sends on the thread on which it was called gets no more time than the handler's own
 * request {@linkplain Exchange#remainingNanos has left}, whatever its timeout.
 */
public interface MessageClient extends AutoCloseable {
    /**
     * Sends a message.
     *
     * @param message its ownership is taken
     * @return done when the send has completed; only a reply shows that the server's program has seen the message.
     *     Fails with {@link SendLimitException} if too much {@linkplain RdmaClient.Builder#maxPending waits to be sent}
     */
    Future<Void> send(ByteBuf message);

    /**
     * Sends a message, as {@link #send(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return done when the send has completed
     */
    CompletableFuture<Void> send(byte[] message);

    /**
     * Sends a message, as {@link #send(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return done when the send has completed
     */
    CompletableFuture<Void> send(ByteBuffer message);

    /**
     * Sends a request. Its reply may take as long as the {@linkplain RdmaClient.Builder#requestTimeout request
     * timeout}. The request carries the timeout, and the server drops a request whose time is over.
     *
     * @param message its ownership is taken
     * @return the reply, for the caller to release. Fails with {@link RequestException}, or with the connection's
     *     cause. Cancelling it gives up the reply; the request may have been sent
     */
    Future<ByteBuf> request(ByteBuf message);

    /**
     * Sends a request, as {@link #request(ByteBuf)} does, with a timeout of its own.
     *
     * @param message its ownership is taken
     * @param timeout how long the reply may take; more than zero
     * @return the reply, for the caller to release
     */
    Future<ByteBuf> request(ByteBuf message, Duration timeout);

    /**
     * Sends a request, as {@link #request(ByteBuf)} does, with options of its own.
     *
     * @param message its ownership is taken
     * @param options what differs from the client
     * @return the reply, for the caller to release
     */
    Future<ByteBuf> request(ByteBuf message, RequestOptions options);

    /**
     * Sends a request, as {@link #request(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return the reply
     */
    CompletableFuture<byte[]> request(byte[] message);

    /**
     * Sends a request, as {@link #request(ByteBuf)} does, with a timeout of its own.
     *
     * @param message copied before this returns
     * @param timeout how long the reply may take; more than zero
     * @return the reply
     */
    CompletableFuture<byte[]> request(byte[] message, Duration timeout);

    /**
     * Sends a request, as {@link #request(ByteBuf)} does, with options of its own.
     *
     * @param message copied before this returns
     * @param options what differs from the client
     * @return the reply
     */
    CompletableFuture<byte[]> request(byte[] message, RequestOptions options);

    /**
     * Sends a request, as {@link #request(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return the reply, a heap buffer of its own
     */
    CompletableFuture<ByteBuffer> request(ByteBuffer message);

    /**
     * Sends a request, as {@link #request(ByteBuf)} does, with a timeout of its own.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @param timeout how long the reply may take; more than zero
     * @return the reply, a heap buffer of its own
     */
    CompletableFuture<ByteBuffer> request(ByteBuffer message, Duration timeout);

    /**
     * Sends a request, as {@link #request(ByteBuf)} does, with options of its own.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @param options what differs from the client
     * @return the reply, a heap buffer of its own
     */
    CompletableFuture<ByteBuffer> request(ByteBuffer message, RequestOptions options);

    /**
     * Sends a request, as {@link #request(byte[], RequestOptions)} does, and returns the metadata of its reply too.
     *
     * @param message copied before this returns
     * @param options what differs from the client
     * @return the reply with what the handler has {@linkplain Exchange#addReplyMetadata added}
     */
    CompletableFuture<Reply<byte[]>> requestReply(byte[] message, RequestOptions options);

    /**
     * Calls a method of the server, which answers it with {@link Methods}.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param method what to call
     * @param request encoded before this returns
     * @param options what differs from the client
     * @return the reply, decoded on the event loop. Fails as a {@linkplain #request(ByteBuf) request} does, with {@link
     *     RequestException.Refused} if the server does not have the method, and with what a codec has thrown
     */
    <Q, R> CompletableFuture<R> call(Method<Q, R> method, Q request, RequestOptions options);

    /**
     * Calls a method of the server, as {@link #call(Method, Object, RequestOptions)} does, and returns the metadata of
     * its reply too.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param method what to call
     * @param request encoded before this returns
     * @param options what differs from the client
     * @return the reply with what the handler has {@linkplain Exchange#addReplyMetadata added}
     */
    <Q, R> CompletableFuture<Reply<R>> callReply(Method<Q, R> method, Q request, RequestOptions options);

    /**
     * Calls a method of the server, as {@link #call(Method, Object, RequestOptions)} does.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param method what to call
     * @param request encoded before this returns
     * @return the reply
     */
    default <Q, R> CompletableFuture<R> call(Method<Q, R> method, Q request) {
        return call(method, request, RequestOptions.DEFAULTS);
    }

    /**
     * Begins a request of many messages, in both directions. It is never begun a second time, nor on two connections.
     * It waits for a connection as a request does. Without a timeout in its options it may then take any time.
     *
     * @param message the first, which the handler gets with the request; its ownership is taken
     * @param options what differs from the client
     * @return the messages that follow: at once, also if it fails
     */
    MessageStream stream(ByteBuf message, RequestOptions options);

    /**
     * Begins a request of many messages, as {@link #stream(ByteBuf, RequestOptions)} does.
     *
     * @param message copied before this returns
     * @param options what differs from the client
     * @return the messages that follow
     */
    MessageStream stream(byte[] message, RequestOptions options);

    /**
     * Calls a method of the server of which requests, replies or both are many, and which it answers with {@link
     * Methods#withStream}. It begins as {@link #stream(ByteBuf, RequestOptions)} does.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param method what to call
     * @param options what differs from the client
     * @return sends requests and receives replies: at once, also if it fails
     */
    <Q, R> ValueStream<Q, R> stream(Method<Q, R> method, RequestOptions options);

    /**
     * Calls a method of the server with one request that has many replies, as {@link #stream(Method, RequestOptions)}
     * does.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param method what to call
     * @param request encoded before this returns
     * @param options what differs from the client
     * @return receives replies: its {@link ValueStream#end} has been called
     */
    <Q, R> ValueStream<Q, R> stream(Method<Q, R> method, Q request, RequestOptions options);

    /**
     * Returns whether the next message will be sent soon.
     *
     * @return false while so many bytes wait to be sent, or for a connection, that the caller should wait
     */
    boolean isWritable();

    /**
     * Waits until messages can be sent: a program that sends without waiting for each of its futures waits for this
     * one when {@link #isWritable()} is false.
     *
     * @return done when the client is writable, which may be at once; fails with {@link ConnectionException} when it is
     *     closed. Stages run on a virtual thread
     */
    CompletableFuture<Void> whenWritable();

    /** Closes it, and waits until that is done. Requests without a reply fail. Idempotent. */
    @Override
    void close();
}
