package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * An operation of a client on its connection.
 *
 * @param <T> the result
 */
public interface Operation<T> {
    Operation<Void> SEND = (messenger, message, timeoutNanos) -> messenger.message(message);
    Operation<ByteBuf> REQUEST = Messenger::request;
    Operation<byte[]> REQUEST_BYTES = Messenger::requestBytes;
    Operation<ByteBuffer> REQUEST_BUFFER = Messenger::requestBuffer;

    /**
     * Begins. Any thread.
     *
     * @param message its ownership is taken
     * @param timeoutNanos of a request
     */
    Future<T> start(Messenger messenger, @Nullable ByteBuf message, long timeoutNanos);
}
