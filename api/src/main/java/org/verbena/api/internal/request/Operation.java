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
    Operation<Void> SEND = (messenger, message, timeoutNanos, whole, goesOn) ->
            messenger.outgoing().message(message, goesOn);
    Operation<ByteBuf> REQUEST = (messenger, message, timeoutNanos, whole, goesOn) ->
            messenger.requests().request(message, timeoutNanos, whole, goesOn);
    Operation<byte[]> REQUEST_BYTES = (messenger, message, timeoutNanos, whole, goesOn) ->
            messenger.requests().requestBytes(message, timeoutNanos, whole, goesOn);
    Operation<ByteBuffer> REQUEST_BUFFER = (messenger, message, timeoutNanos, whole, goesOn) ->
            messenger.requests().requestBuffer(message, timeoutNanos, whole, goesOn);

    /**
     * Begins. Any thread.
     *
     * @param message its ownership is taken
     * @param timeoutNanos of a request
     * @param whole whether that is all the time that the program gives it, or most of it: a server that has less and
     *     does not answer may be a good one
     * @param goesOn whether the client {@linkplain LinkOwner#goOn goes on} with it if this connection cannot begin it;
     *     else it fails
     */
    Future<T> start(Messenger messenger, @Nullable ByteBuf message, long timeoutNanos, boolean whole, boolean goesOn);
}
