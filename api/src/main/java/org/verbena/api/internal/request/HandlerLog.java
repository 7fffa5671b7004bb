package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * Logs faults of a connection's handlers, at a rate that is limited for all connections of a server or client: the
 * operator of this end must see them, but peers may be able to cause them at will.
 */
public final class HandlerLog {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    /**
     * How long handlers may occupy a loop without a warning: peers and their timeouts notice such a pause, and a busy
     * machine seldom causes one.
     */
    public static final long SLOW_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * What the connections of a server or client share: one limit for each kind, so that none hides another.
     *
     * @param failures of handlers
     * @param replies that could not be sent
     * @param sends of handlers that do not reply
     * @param slow handlers on a loop
     * @param lost connections of a client
     */
    public record Limits(
            RateLimitedLog failures,
            RateLimitedLog replies,
            RateLimitedLog sends,
            RateLimitedLog slow,
            RateLimitedLog lost) {
        public Limits() {
            this(
                    new RateLimitedLog(LOG),
                    new RateLimitedLog(LOG),
                    new RateLimitedLog(LOG),
                    new RateLimitedLog(LOG),
                    new RateLimitedLog(LOG));
        }
    }

    private final MessagePort port;
    private final Channel channel;
    private final Limits limits;

    HandlerLog(MessagePort port, Limits limits) {
        this.port = port;
        channel = port.channel();
        this.limits = limits;
    }

    /** Any thread. */
    void failed(Incoming incoming, Throwable failure) {
        String what = incoming.isRequest() ? "request" : "message";
        if (limits.failures.error(channel + ": the handler failed on a " + what, failure)) {
            note("the handler failed: " + failure);
        }
    }

    /** The program has answered, and the answer cannot be sent. Any thread. */
    void replyFailed(Throwable cause) {
        if (limits.replies.warn(
                channel + ": a reply could not be sent, and its request fails at the client: " + cause)) {
            note("a reply could not be sent: " + cause);
        }
        LOG.debug("{}", channel, cause);
    }

    /** For {@code verbena stat}. */
    private void note(String fault) {
        ConnectionStat stat = port.stat();
        if (stat != null) {
            stat.failed(fault);
        }
    }

    /** The handler of a request has used {@code send}, and the request ends without an answer. Any thread. */
    void neverReplied() {
        limits.sends.warn(channel + ": the handler of a request used send and not reply, and the client got no answer:"
                + " only reply answers a request");
    }

    /** The connection has failed. Anyone who reaches a server's port can cause that, and so can a client's server. */
    void lost(Throwable cause) {
        RateLimitedLog strangers = port.strangers();
        (strangers == null ? limits.lost : strangers)
                .warn(channel + ": " + (cause.getMessage() == null ? cause : cause.getMessage()));
        LOG.debug("{}", channel, cause);
    }

    /** Warns if handling the messages of one read has kept the loop for long. */
    void onHandled(long nanos) {
        if (nanos >= SLOW_NANOS) {
            limits.slow.warn(channel + ": handlers kept the event loop for " + TimeUnit.NANOSECONDS.toMillis(nanos)
                    + " ms, and all connections of this loop waited. A handler must not block it: build with"
                    + " virtualThreads(true), or hand the work to another thread. The stages of futures run on the"
                    + " loop, too: use their Async methods");
        }
    }
}
