package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.service.Metadata;

/**
 * A request that is a stream. Its outcome is the stream's.
 *
 * @param headers what goes with it
 * @param stream the client's end
 * @param limited whether the stream has the time of the request; else only waiting for a connection has
 * @param replied gets all metadata that the server has sent, if the stream does not fail
 */
public record StreamOperation(Headers headers, ItemStream stream, boolean limited, Consumer<Metadata> replied)
        implements WithHeaders<Void> {
    @Override
    public StreamOperation with(Headers others, Consumer<Metadata> to) {
        return new StreamOperation(others, stream, limited, to);
    }

    @Override
    public Future<Void> start(
            Messenger messenger,
            @Nullable ByteBuf message,
            long timeoutNanos,
            boolean hasFullTimeout,
            boolean mayRedirect) {
        return messenger.requests().stream(message, timeoutNanos, hasFullTimeout, mayRedirect, this);
    }
}
