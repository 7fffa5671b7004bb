package org.verbena.api;

import io.netty.buffer.ByteBuf;

/** What a program does with a message, in the short form of the API. */
@FunctionalInterface
public interface MessageHandler {

    /**
     * A message or request came. Runs on the channel's event loop, so it must not block; hand work that does to another thread, and reply from there.
     *
     * @param exchange where an answer goes
     * @param message released when this returns: {@code retain()} it to keep it, or to send it back
     * @throws Exception is logged here, with its stack, at most once a second for each connection; the peer's request fails with
     *     {@link RequestException.Failed}, and learns what was thrown only from a server that {@linkplain RdmaServer.Builder#describeFailures(boolean) tells it}
     */
    void onMessage(Exchange exchange, ByteBuf message) throws Exception;
}
