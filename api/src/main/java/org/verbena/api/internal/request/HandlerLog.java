package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.stat.ConnectionStat;

/**
 * Logs faults of a connection's handlers, at a limited rate: the operator of this end must see them, but a peer may be
 * able to cause them at will.
 */
public final class HandlerLog {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    /** How often failures are logged. Those in between are counted. */
    private static final long FAILURE_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * How long handlers may occupy a loop without a warning: peers and their timeouts notice such a pause, and a busy
     * machine seldom causes one.
     */
    public static final long SLOW_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** How often a slow handler is logged, by the whole process: all connections have the same handlers. */
    private static final long SLOW_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final AtomicLong LAST_SLOW_NANOS = new AtomicLong(System.nanoTime() - SLOW_INTERVAL_NANOS);

    /** For the whole process: replies that cannot be sent are one program's fault, on all connections. */
    private static final Interval REPLIES = new Interval();

    /** For the whole process: requests whose handlers used {@code send} and did not reply. */
    private static final Interval SENDS = new Interval();

    private final MessagePort port;
    private final Channel channel;
    private final Interval failures = new Interval();

    HandlerLog(MessagePort port) {
        this.port = port;
        channel = port.channel();
    }

    /** Any thread. */
    void failed(Incoming incoming, Throwable failure) {
        long others = failures.due(System.nanoTime());
        if (others >= 0) {
            ConnectionStat stat = port.stat();
            if (stat != null) {
                stat.failed("the handler failed: " + failure);
            }
            LOG.error(
                    "{}: the handler failed on a {}{}",
                    channel,
                    incoming.isRequest() ? "request" : "message",
                    others == 0 ? "" : " (and on " + others + " more that were not logged)",
                    failure);
        }
    }

    /** The program has answered, and the answer cannot be sent. Any thread. */
    void replyFailed(Throwable cause) {
        long others = REPLIES.due(System.nanoTime());
        if (others >= 0) {
            ConnectionStat stat = port.stat();
            if (stat != null) {
                stat.failed("a reply could not be sent: " + cause);
            }
            LOG.warn(
                    "{}: a reply could not be sent, and its request fails at the client{}: {}",
                    channel,
                    others == 0 ? "" : " (and " + others + " more that were not logged)",
                    cause.toString());
            LOG.debug("{}", channel, cause);
        }
    }

    /** The handler of a request has used {@code send}, and the request ends without an answer. Any thread. */
    void neverReplied() {
        long others = SENDS.due(System.nanoTime());
        if (others >= 0) {
            LOG.warn(
                    "{}: the handler of a request used send and not reply, and the client got no answer{}: only reply"
                            + " answers a request",
                    channel,
                    others == 0 ? "" : " (and " + others + " more that were not logged)");
        }
    }

    /** Passes one of many failures in each interval. */
    private static final class Interval {
        private long lastNanos;
        private long notLogged;
        private boolean hasLogged;

        /** Returns how many were left out since the last logged one, or -1 if this one is to be left out as well. */
        synchronized long due(long nowNanos) {
            if (hasLogged && nowNanos - lastNanos < FAILURE_INTERVAL_NANOS) {
                notLogged++;
                return -1;
            }
            long others = notLogged;
            hasLogged = true;
            lastNanos = nowNanos;
            notLogged = 0;
            return others;
        }
    }

    /** Handling the messages of one read took this long. */
    void took(long nanos) {
        if (nanos < SLOW_NANOS) {
            return;
        }
        long now = System.nanoTime();
        long last = LAST_SLOW_NANOS.get();
        if (now - last >= SLOW_INTERVAL_NANOS && LAST_SLOW_NANOS.compareAndSet(last, now)) {
            LOG.warn(
                    "{}: handlers kept the event loop for {} ms, and all connections of this loop waited. A handler must not"
                            + " block it: build with virtualThreads(true), or hand the work to another thread. The stages of"
                            + " futures run on the loop, too: use their Async methods",
                    channel,
                    TimeUnit.NANOSECONDS.toMillis(nanos));
        }
    }
}
