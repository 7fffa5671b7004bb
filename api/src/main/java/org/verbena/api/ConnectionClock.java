package org.verbena.api;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.protocol.MessageConnection;

/**
 * Calls a connection when it has asked to be called: at its next deadline, with one task for it, and when memory that
 * it waited for may be there. A connection that asks for nothing schedules nothing. The loop's, but for {@link
 * #resumeSoon()}.
 */
final class ConnectionClock {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionClock.class);

    private final EventLoop loop;
    private final MessageConnection connection;
    private final Runnable tick = this::tick0;
    private final Runnable resume = this::resume0;
    private @Nullable Future<?> timer;
    private boolean stopped;

    ConnectionClock(EventLoop loop, MessageConnection connection) {
        this.loop = loop;
        this.connection = connection;
    }

    /** The deadline is nearer than the last one, or the first. */
    void wakeAt(long deadlineNanos) {
        cancelTimer();
        if (stopped) {
            return;
        }
        try {
            timer = loop.schedule(tick, deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException shuttingDown) {
            LOG.debug("{}: the loop ends, and with it this connection's clock", connection.endpoint(), shuttingDown);
        }
    }

    /** Memory that the connection waited for may be there. */
    void resumeSoon() {
        try {
            loop.execute(resume);
        } catch (RejectedExecutionException shuttingDown) {
            LOG.debug("{}: the loop ends, and this connection with it", connection.endpoint(), shuttingDown);
        }
    }

    /** The connection is over. Idempotent. */
    void stop() {
        stopped = true;
        cancelTimer();
    }

    private void cancelTimer() {
        Future<?> scheduled = timer;
        if (scheduled != null) {
            timer = null;
            scheduled.cancel(false);
        }
    }

    private void tick0() {
        timer = null;
        if (!stopped) {
            connection.onDeadline(System.nanoTime());
        }
    }

    private void resume0() {
        if (!stopped) {
            connection.resume();
        }
    }
}
