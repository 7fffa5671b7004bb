package org.verbena.api.client;

/**
 * Sees each request of a client before it is sent: it may add metadata, refuse the request, and wait for its outcome.
 * {@code RdmaClient.Builder.intercept} adds it. Each request is seen once, however often it is sent again.
 */
@FunctionalInterface
public interface ClientInterceptor {
    /**
     * A request is to be sent. Runs on the thread that sends it, which may be an event loop: it must not block. Several
     * threads may call it at once.
     *
     * @param request valid until its end
     * @throws Exception the request fails with this, and is not sent
     */
    void onRequest(OutgoingRequest request) throws Exception;
}
