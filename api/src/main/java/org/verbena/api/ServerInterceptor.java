package org.verbena.api;

import io.netty.buffer.ByteBuf;

/**
 * Stands around the handler of a server: it sees each request with its metadata before the handler does, may refuse it,
 * may add metadata to the reply, and may wait for the outcome. {@link RdmaServer.Builder#intercept} adds it. Messages
 * that are not requests pass it by.
 *
 * <pre>{@code
 * ServerInterceptor tokens = (exchange, message, next) -> {
 *     if (isValid(exchange.metadata().text("token"))) {
 *         next.onMessage(exchange, message);
 *     } else {
 *         exchange.refuse(Reason.NOT_AUTHORIZED, "no valid token");
 *     }
 * };
 * }</pre>
 */
@FunctionalInterface
public interface ServerInterceptor {
    /**
     * A request has arrived. Runs where the handler runs. {@link Exchange#onEnd} tells how it ends, which may be long
     * after {@code next} has returned.
     *
     * @param exchange of the request
     * @param message released after the handler, as {@link MessageHandler#onMessage} says
     * @param next the next interceptor, or the handler: called once at most, on this thread, with the same exchange and
     *     message. If it is not called, the request is to be answered here: refused, failed or replied to
     * @throws Exception the request fails, as if the handler had thrown
     */
    void onRequest(Exchange exchange, ByteBuf message, MessageHandler next) throws Exception;
}
