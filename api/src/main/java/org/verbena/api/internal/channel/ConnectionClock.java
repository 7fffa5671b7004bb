package org.verbena.api.internal.channel;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.LoopClock;

/**
 * Calls a connection at its next deadline, with one scheduled task, and when memory that it waits for may be available.
 * A connection without a deadline schedules nothing. Event loop only, except {@link #resumeSoon()}.
 */
final class ConnectionClock {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionClock.class);

    private final EventLoop loop;
    private final LoopClock clock;
    private final MessageConnection connection;
    private final Runnable tick = this::tick0;
    private final Runnable resume = this::resume0;
    private @Nullable Future<?> timer;
    private boolean stopped;

    ConnectionClock(EventLoop loop, MessageConnection connection) {
        this.loop = loop;
        clock = LoopGroup.clockOf(loop);
        this.connection = connection;
    }

    /** Sets a deadline, which is the first or earlier than the last one. */
    void wakeAt(long deadlineNanos) {
        cancelTimer();
        if (stopped) {
            return;
        }
        try {
            timer = loop.schedule(tick, deadlineNanos - clock.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException shuttingDown) {
            LOG.debug(
                    "{}: the event loop is ending, and calls this connection no more",
                    connection.endpoint(),
                    shuttingDown);
        }
    }

    /** Memory that the connection waits for may be available. */
    void resumeSoon() {
        try {
            loop.execute(resume);
        } catch (RejectedExecutionException shuttingDown) {
            LOG.debug("{}: the event loop is ending, and this connection with it", connection.endpoint(), shuttingDown);
        }
    }

    /** The connection has ended. Idempotent. */
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
            connection.onDeadline(clock.nanoTime());
        }
    }

    private void resume0() {
        if (!stopped) {
            connection.resume();
        }
    }
}
