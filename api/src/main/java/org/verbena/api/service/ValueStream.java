package org.verbena.api.service;

import java.util.Iterator;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * A {@link MessageStream} whose messages are values. The client gets it from {@code client.stream} with a {@link
 * Method}, the handler from {@code Methods.withStream}. All methods may be called on any thread. What they do, and how
 * a stream flows, ends and fails, is said there.
 *
 * <pre>{@code
 * try (ValueStream<Query, Row> rows = client.stream(FIND, query, RequestOptions.DEFAULTS)) {
 *     for (Row row : rows) {
 *         print(row);
 *     }
 * }
 * }</pre>
 *
 * <p><b>Codecs.</b> A value that a codec cannot encode or decode ends the stream as it would end a call: at the client
 * with what the codec has thrown, at the server as if the handler had thrown that, so that it is logged there and the
 * client gets {@link org.verbena.transport.RequestException.Failed}. What has arrived behind such a value is dropped.
 * Values are encoded on the thread that sends them. They are decoded on the thread that receives them, or on the
 * connection's event loop for a subscriber.
 *
 * @param <S> the type of what this end sends: requests at the client, replies at the server
 * @param <R> the type of what it receives
 */
public interface ValueStream<S, R> extends Iterable<R>, AutoCloseable {
    /**
     * Sends a value, as {@link MessageStream#send(io.netty.buffer.ByteBuf)} does.
     *
     * @param value encoded before this returns
     * @return done when the send has completed
     */
    CompletableFuture<Void> send(S value);

    /**
     * Sends all values of a publisher, as {@link MessageStream#sendAll} does, and then {@linkplain #end ends} this
     * side.
     *
     * @param values each is encoded where it is published
     */
    void sendAll(Flow.Publisher<? extends S> values);

    /**
     * Returns whether the next value will be sent soon.
     *
     * @return as {@link MessageStream#isWritable}
     */
    boolean isWritable();

    /**
     * Waits until values can be sent.
     *
     * @return as {@link MessageStream#whenWritable}
     */
    CompletableFuture<Void> whenWritable();

    /** Sends nothing further. What waits is sent first. Idempotent. */
    void end();

    /**
     * Waits for the next value, as {@link MessageStream#receive} does.
     *
     * @return null when the other end has ended, and when the stream is over without a failure
     * @throws InterruptedException the thread was interrupted, and no value is lost
     * @throws RuntimeException the stream has failed, or the codec has, with this; a checked one is the cause of a
     *     {@link java.util.concurrent.CompletionException}
     */
    @Nullable R receive() throws InterruptedException;

    /**
     * Iterates over the values as {@link #receive} returns them. A thread that is interrupted gets a {@link
     * org.verbena.transport.ConnectionException} and stays interrupted.
     *
     * @return waits for each value
     */
    @Override
    Iterator<R> iterator();

    /**
     * Publishes the values, to one subscriber, as {@link MessageStream#messages} does.
     *
     * @return a further subscriber fails with {@link IllegalStateException}
     */
    Flow.Publisher<R> values();

    /**
     * Returns what the other end has sent beside its first value.
     *
     * @return as {@link MessageStream#metadata}
     */
    CompletableFuture<Metadata> metadata();

    /**
     * Returns what the server has sent with the stream's end.
     *
     * @return as {@link MessageStream#trailers}
     */
    CompletableFuture<Metadata> trailers();

    /**
     * Returns when the stream is over.
     *
     * @return as {@link MessageStream#whenOver}
     */
    CompletableFuture<Void> whenOver();

    /** Gives the stream up, unless it is over, as {@link MessageStream#cancel} does. */
    void cancel();

    /** Closes the stream, as {@link MessageStream#close} does. */
    @Override
    void close();
}
