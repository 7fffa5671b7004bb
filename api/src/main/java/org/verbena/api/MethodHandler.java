package org.verbena.api;

import org.verbena.transport.RequestFailure;

/**
 * Answers the requests of a {@link org.verbena.api.service.Method}. Runs where {@link MessageHandler} says.
 *
 * @param <Q> the type of requests
 * @param <R> the type of replies
 */
@FunctionalInterface
public interface MethodHandler<Q, R> {
    /**
     * Answers a request.
     *
     * @param exchange has the metadata, the deadline and the connection; it must not be used to reply
     * @param request what the client has sent
     * @return the reply
     * @throws Exception a {@link RequestFailure} is an answer; anything else fails as {@link MessageHandler#onMessage}
     *     says
     */
    R answer(Exchange exchange, Q request) throws Exception;
}
