package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.service.Metadata;

/**
 * A request that may have headers, and wants those of its reply. Without any it is a plain one on the wire.
 *
 * @param <T> the result
 * @param headers what goes with it
 * @param flags of {@link Frames}
 * @param outcome makes the result of the reply
 */
public record HeadedOperation<T>(Headers headers, int flags, Outcome<T> outcome) implements WithHeaders<T> {
    /** Makes a result, on the event loop. */
    @FunctionalInterface
    public interface Outcome<T> {
        /**
         * Makes it.
         *
         * @param metadata of the reply
         * @param reply its ownership is taken
         * @throws Exception the request fails with this
         */
        T of(Metadata metadata, ByteBuf reply) throws Exception;
    }

    /** How much of it counts against a client's limits beside the message. */
    int countedBytes() {
        return headers.isEmpty() ? 0 : headers.bytes();
    }

    @Override
    public HeadedOperation<T> with(Headers others, Consumer<Metadata> replied) {
        return new HeadedOperation<>(others, flags, (metadata, reply) -> {
            replied.accept(metadata);
            return outcome.of(metadata, reply);
        });
    }

    @Override
    public Future<T> start(
            Messenger messenger,
            @Nullable ByteBuf message,
            long timeoutNanos,
            boolean hasFullTimeout,
            boolean mayRedirect) {
        return messenger.requests().headed(message, timeoutNanos, hasFullTimeout, mayRedirect, this);
    }
}
