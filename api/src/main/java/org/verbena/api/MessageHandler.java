package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;

/**
 * Handles messages, in the short form of the API. A lambda gets Netty's {@link ByteBuf}; {@link #ofBytes} and {@link
 * #ofBuffer} make handlers that get the JDK's types.
 *
 * <p>A handler runs on the event loop of its connection and must not block: while it blocks, every connection of that
 * loop waits, and a handler that waits for work of this loop waits forever. Run a handler that blocks on virtual
 * threads ({@link RdmaServer.Builder#virtualThreads}, {@link RdmaClient.Builder#virtualThreads}). If handlers occupy a
 * loop for more than a second, a warning is logged.
 */
@FunctionalInterface
public interface MessageHandler {

    /**
     * Handles a message or request. Runs on the connection's event loop, or on a virtual thread if the builder says so.
     *
     * @param exchange sends the answer; it may be used after this returns, from any thread
     * @param message released when this returns: {@code retain()} it to keep it, or to send it back
     * @throws Exception a {@link RequestFailure} is an answer: the peer's request fails with the same code, words and
     *     payload. Anything else is logged here, with its stack, at most once a second for each connection; the peer's
     *     request fails with {@link RequestException.Failed}, which describes the exception only if the server
     *     {@linkplain RdmaServer.Builder#discloseErrors(boolean) discloses errors}
     */
    void onMessage(Exchange exchange, ByteBuf message) throws Exception;

    /**
     * Makes a handler that gets each message as an array of its own. The message is copied into it, and the handler may
     * keep it.
     *
     * @param handler what to do with a message
     * @return the handler
     */
    static MessageHandler ofBytes(Of<byte[]> handler) {
        Objects.requireNonNull(handler, "the handler is null");
        return (exchange, message) -> handler.onMessage(exchange, ByteBufUtil.getBytes(message));
    }

    /**
     * Makes a handler that gets each message as a read-only view of the memory that the message was received into, or
     * of a copy if the message is not in one piece. The view is valid until the handler returns, after which the memory
     * is used for other messages: copy what is kept longer. {@code MemorySegment.ofBuffer(message)} is the same memory
     * as a segment.
     *
     * @param handler what to do with a message
     * @return the handler
     */
    static MessageHandler ofBuffer(Of<ByteBuffer> handler) {
        Objects.requireNonNull(handler, "the handler is null");
        return (exchange, message) ->
                handler.onMessage(exchange, message.nioBuffer().asReadOnlyBuffer());
    }

    /**
     * Handles messages of a type other than Netty's.
     *
     * @param <M> {@code byte[]} or {@link ByteBuffer}
     */
    @FunctionalInterface
    interface Of<M> {
        /**
         * Handles a message or request, as {@link MessageHandler#onMessage} does.
         *
         * @param exchange sends the answer; it may be used after this returns, from any thread
         * @param message the message
         * @throws Exception as {@link MessageHandler#onMessage} says
         */
        void onMessage(Exchange exchange, M message) throws Exception;
    }
}
