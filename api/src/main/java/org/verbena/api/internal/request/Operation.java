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
    Operation<Void> SEND =
            (messenger, message, timeoutNanos, goesOn) -> messenger.outgoing().message(message, goesOn);
    Operation<ByteBuf> REQUEST =
            (messenger, message, timeoutNanos, goesOn) -> messenger.requests().request(message, timeoutNanos, goesOn);
    Operation<byte[]> REQUEST_BYTES = (messenger, message, timeoutNanos, goesOn) ->
            messenger.requests().requestBytes(message, timeoutNanos, goesOn);
    Operation<ByteBuffer> REQUEST_BUFFER = (messenger, message, timeoutNanos, goesOn) ->
            messenger.requests().requestBuffer(message, timeoutNanos, goesOn);

    /**
     * Begins. Any thread.
     *
     * @param message its ownership is taken
     * @param timeoutNanos of a request
     * @param goesOn whether the client {@linkplain LinkOwner#goOn goes on} with it if this connection cannot begin it;
     *     else it fails
     */
    Future<T> start(Messenger messenger, @Nullable ByteBuf message, long timeoutNanos, boolean goesOn);
}
