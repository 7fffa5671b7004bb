package org.verbena.api;

import org.jspecify.annotations.Nullable;

/**
 * How a connection's messages are handled.
 *
 * @param handler gets them
 * @param virtualThreads whether it runs on virtual threads
 * @param describesFailures whether a peer whose request failed is told what the handler threw
 * @param counters of the requests that do not reach the handler
 * @param queueAge says which requests have waited too long; null to refuse none for that
 * @param limit of handlers on virtual threads; null for none
 * @param retries of this end's own requests; null for none
 * @param bounds of what may wait to be sent
 */
record Serving(
        MessageHandler handler,
        boolean virtualThreads,
        boolean describesFailures,
        RequestCounters counters,
        @Nullable QueueAge queueAge,
        @Nullable HandlerLimit limit,
        @Nullable Retries retries,
        SendLimit.Bounds bounds) {}
