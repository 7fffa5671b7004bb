package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * An operation of a client on one of its connections.
 *
 * @param <T> the result
 */
public interface Operation<T> {
    Operation<Void> SEND = (messenger, message, timeoutNanos, hasFullTimeout, mayRedirect) ->
            messenger.outgoing().message(message, mayRedirect);
    Operation<ByteBuf> REQUEST = (messenger, message, timeoutNanos, hasFullTimeout, mayRedirect) ->
            messenger.requests().request(message, timeoutNanos, hasFullTimeout, mayRedirect);
    Operation<byte[]> REQUEST_BYTES = (messenger, message, timeoutNanos, hasFullTimeout, mayRedirect) ->
            messenger.requests().requestBytes(message, timeoutNanos, hasFullTimeout, mayRedirect);
    Operation<ByteBuffer> REQUEST_BUFFER = (messenger, message, timeoutNanos, hasFullTimeout, mayRedirect) ->
            messenger.requests().requestBuffer(message, timeoutNanos, hasFullTimeout, mayRedirect);

    /**
     * Begins. Any thread.
     *
     * @param message its ownership is taken
     * @param timeoutNanos of a request
     * @param hasFullTimeout whether that is all the time that the program gives it, or more than half: a server that
     *     has less and does not answer may be a good one
     * @param mayRedirect whether the client {@linkplain ClientTransport.Owner#goOn takes it to another connection} if
     *     this one cannot begin it; otherwise it fails
     */
    Future<T> start(
            Messenger messenger,
            @Nullable ByteBuf message,
            long timeoutNanos,
            boolean hasFullTimeout,
            boolean mayRedirect);
}
