package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * A request that is a stream. Its outcome is the stream's.
 *
 * @param headers what goes with it
 * @param stream the client's end
 * @param limited whether the stream has the time of the request; else only waiting for a connection has
 */
public record StreamOperation(Headers headers, ItemStream stream, boolean limited) implements Operation<Void> {
    @Override
    public Future<Void> start(Messenger messenger, @Nullable ByteBuf message, long timeoutNanos, boolean goesOn) {
        return messenger.requests().stream(message, timeoutNanos, goesOn, this);
    }
}
