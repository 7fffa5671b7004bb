package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * How a connection's messages are handled.
 *
 * @param handler gets them
 * @param virtualThreads whether it runs on virtual threads
 * @param inOrder whether such a thread handles one request of a connection after another
 * @param interruptsCancelled whether such a thread is interrupted when nobody waits for its request any more
 * @param describesFailures whether to send the handler's exception to a peer whose request failed
 * @param logLimits of all connections of this server or client
 * @param counters of the requests that do not reach the handler
 * @param queueAge determines which requests have waited too long; null to refuse none for that
 * @param limit of handlers on virtual threads; null for none
 * @param bounds of what may wait to be sent
 * @param openBounds of the requests that have arrived and have no answer
 * @param maxRequests how many of this end's own requests may wait for replies
 */
public record Serving(
        Handler handler,
        boolean virtualThreads,
        boolean inOrder,
        boolean interruptsCancelled,
        boolean describesFailures,
        HandlerLog.Limits logLimits,
        RequestCounters counters,
        @Nullable QueueAge queueAge,
        @Nullable HandlerLimit limit,
        SendLimit.Bounds bounds,
        OpenRequests.Bounds openBounds,
        int maxRequests) {

    /** Gets messages, on the loop or on a virtual thread. */
    public interface Handler {
        /**
         * Handles a message.
         *
         * @param message released when this returns
         * @throws Exception the handler has failed
         */
        void onMessage(Incoming incoming, ByteBuf message) throws Exception;
    }
}
