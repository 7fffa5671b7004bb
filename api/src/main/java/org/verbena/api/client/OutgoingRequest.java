package org.verbena.api.client;

import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.service.Metadata;

/** A request that a client is about to send, for a {@link ClientInterceptor}. */
public interface OutgoingRequest {
    /**
     * Returns what it calls.
     *
     * @return service and method, as {@code orders/place}; null for a request without a method
     */
    @Nullable String method();

    /**
     * Returns what is sent beside the message.
     *
     * @return what the caller, and interceptors before this one, have added
     */
    Metadata metadata();

    /**
     * Adds metadata, in place of entries of the same name. To be called before {@link ClientInterceptor#onRequest}
     * returns.
     *
     * @param more what to add
     * @throws IllegalArgumentException all together would be over the limits of {@link Metadata}
     */
    void addMetadata(Metadata more);

    /**
     * Runs an action when the request has its reply, or fails: once, on the thread that completes it, which is an event
     * loop as a rule; it must not block. What it throws is logged. It runs before what the caller has added to its
     * future, and the actions of interceptors run in the reverse of their order.
     *
     * @param action gets the metadata of the reply, and null; or empty metadata, and what the request failed with
     */
    void onEnd(BiConsumer<Metadata, @Nullable Throwable> action);
}
