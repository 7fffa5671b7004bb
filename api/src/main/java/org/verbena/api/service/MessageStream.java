package org.verbena.api.service;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.util.Iterator;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * The messages of a request that has many of them, in both directions. The client gets it from {@code client.stream},
 * the handler from {@code exchange.stream()}. All methods may be called on any thread.
 *
 * <pre>{@code
 * try (MessageStream lines = client.stream(question, RequestOptions.DEFAULTS)) {
 *     lines.end();
 *     for (byte[] line : lines) {
 *         print(line);
 *     }
 * }
 * }</pre>
 *
 * <p><b>The end.</b> The client's {@link #end} says that it sends nothing more, and it still receives. The server's
 * {@code end} is the end of the stream, also for a client that has more to send. A stream fails if its request does:
 * when its handler throws or calls {@code exchange.fail}, its time is over, or its connection is lost. It is never
 * begun a second time. Without a timeout in its options it may take any time. If a handler begins it on its own thread,
 * it has the time that the handler's request has left.
 *
 * <p><b>Flow.</b> An end receives in advance at most 256 messages, and no further one when these have 64 KiB: then the
 * other end waits, with this stream only. So a program that does not read stops nobody but its own sender. Messages
 * that are sent wait here until the other end takes them, and {@link #send} says what becomes of too many.
 */
public interface MessageStream extends Iterable<byte[]>, AutoCloseable {
    /**
     * Sends a message when the other end takes it.
     *
     * @param message its ownership is taken
     * @return done when the send has completed. Fails with {@link org.verbena.transport.SendLimitException}, and
     *     nothing is sent, if 256 messages wait, or this one does not fit into 1 MiB with those that wait; and if it
     *     does not fit into what all streams of the connection may have waiting, {@code maxPending} of the builder, the
     *     last quarter of which is for streams of which nothing else waits. Fails with the stream, and if the stream is
     *     over or this end has {@linkplain #end ended} it. Cancelling it stops nothing
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
     * Sends all messages of a publisher as fast as the other end takes them, and then {@linkplain #end ends} this side.
     * Takes as many in advance as 32, and only while the stream {@linkplain #isWritable is writable}. If the publisher
     * fails, the stream fails; if the stream ends, the subscription is cancelled.
     *
     * @param messages the ownership of each is taken
     */
    void sendAll(Flow.Publisher<? extends ByteBuf> messages);

    /**
     * Returns whether the next message will be sent soon.
     *
     * @return false while half of what may wait does, of this stream or of all streams of the connection, and when the
     *     stream is over. If nothing of this stream waits, three quarters of what may wait of all
     */
    boolean isWritable();

    /**
     * Waits until messages can be sent: a program that does not wait for each of its futures waits for this one when
     * {@link #isWritable} is false.
     *
     * @return done when it is writable, which may be at once; fails when the stream is over
     */
    CompletableFuture<Void> whenWritable();

    /** Sends nothing further. What waits is sent first. Idempotent. */
    void end();

    /**
     * Waits for the next message. One thread at a time receives; it may not be an event loop.
     *
     * @return for the caller to release; null when the other end has ended, and when the stream is over without a
     *     failure
     * @throws InterruptedException the thread was interrupted, and no message is lost
     * @throws RuntimeException the stream has failed, with this. Its kinds are those of the client's requests; a
     *     checked one is the cause of a {@link java.util.concurrent.CompletionException}
     * @throws java.util.concurrent.CancellationException it was cancelled, at either end
     * @throws IllegalStateException a subscriber has the messages
     */
    @Nullable ByteBuf receive() throws InterruptedException;

    /**
     * Iterates over the messages as {@link #receive} returns them. A thread that is interrupted gets a {@link
     * org.verbena.transport.ConnectionException} and stays interrupted.
     *
     * @return waits for each message
     */
    @Override
    Iterator<byte[]> iterator();

    /**
     * Publishes the messages, to one subscriber. It is called on the connection's event loop, where it must not block,
     * and releases what it gets. After a failure of the stream it first gets what has arrived. A subscription that it
     * cancels {@linkplain #cancel cancels} the stream.
     *
     * @return a further subscriber fails with {@link IllegalStateException}
     */
    Flow.Publisher<ByteBuf> messages();

    /**
     * Returns what the other end has sent beside its first message. At the client that is what the handler has
     * {@linkplain org.verbena.api.Exchange#addReplyMetadata added} before it sent a message, or all that it has added
     * if it sends none; at the handler, what came with the request.
     *
     * @return done when the first message has arrived, or the stream has ended; with nothing if there is nothing. Fails
     *     with the stream. Stages run on a virtual thread
     */
    CompletableFuture<Metadata> metadata();

    /**
     * Returns what the server has sent with the stream's end: what the handler has {@linkplain
     * org.verbena.api.Exchange#addReplyMetadata added} since it sent its first message, or all if it has sent none.
     *
     * @return done when the stream has ended; with nothing if there is nothing, and at the handler. Fails
     *     with the stream. Stages run on a virtual thread
     */
    CompletableFuture<Metadata> trailers();

    /**
     * Returns when the stream is over.
     *
     * @return done when it has ended, fails when it has failed; cancelling it cancels the stream. Stages run on a
     *     virtual thread
     */
    CompletableFuture<Void> whenOver();

    /**
     * Gives the stream up, unless it is over. What waits at this end, in either direction, is dropped. At the server
     * the request is {@code isCancelled}; a stream that the server cancels fails at the client with {@link
     * org.verbena.transport.RequestException.Failed}.
     */
    void cancel();

    /**
     * {@linkplain #cancel Cancels} it, unless it is over, or the server has called {@link #end}: what waits at the
     * server is still sent then.
     */
    @Override
    void close();
}
