package org.verbena.api;

import org.verbena.api.service.ValueStream;
import org.verbena.transport.RequestFailure;

/**
 * Answers a {@link org.verbena.api.service.Method} whose requests, replies or both are many. Runs where {@link
 * MessageHandler} says: one that waits for values needs virtual threads.
 *
 * @param <Q> the type of requests
 * @param <R> the type of replies
 */
@FunctionalInterface
public interface StreamHandler<Q, R> {
    /**
     * Answers a request.
     *
     * @param exchange has the metadata, the deadline and the connection; it must not be used to reply
     * @param stream receives what the client sends, the first value included. Its {@link ValueStream#end} answers the
     *     request, on this thread or later; returning from here does not
     * @throws Exception a {@link RequestFailure} is an answer; anything else fails as {@link MessageHandler#onMessage}
     *     says
     */
    void answer(Exchange exchange, ValueStream<R, Q> stream) throws Exception;
}
