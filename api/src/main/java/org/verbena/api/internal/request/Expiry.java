package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import io.netty.util.concurrent.Future;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.transport.spi.LoopClock;

/**
 * Cancels a connection's requests when their time is over: the cancels of their client may not arrive, since a
 * connection whose handlers hang is not read. Event loop only.
 */
final class Expiry {
    /** How long there is between two looks at all open requests: their number is up to the peer. */
    private static final long MIN_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Channel channel;
    private final LoopClock clock;
    private final OpenRequests open;
    private final Consumer<Incoming> cancel;

    /** One task serves all requests, since nearly all are answered long before their time is over. */
    private @Nullable Future<?> sweep;

    private long sweepNanos;
    private long sweptNanos;

    Expiry(Channel channel, OpenRequests open, Consumer<Incoming> cancel) {
        this.channel = channel;
        clock = LoopGroup.clockOf(channel.eventLoop());
        sweptNanos = clock.nanoTime() - MIN_NANOS;
        this.open = open;
        this.cancel = cancel;
    }

    /** A request is among the open ones. */
    void expect0(Incoming request) {
        if (request.hasDeadline()) {
            sweepBy0(request.deadlineNanos());
        }
    }

    private void sweepBy0(long deadlineNanos) {
        long minNanos = sweptNanos + MIN_NANOS;
        long dueNanos = deadlineNanos - minNanos < 0 ? minNanos : deadlineNanos;
        Future<?> scheduled = sweep;
        if (scheduled != null && dueNanos - sweepNanos >= 0) {
            return;
        }
        long delayNanos = Math.max(0, dueNanos - clock.nanoTime());
        sweep = channel.eventLoop().schedule(this::sweep0, delayNanos, TimeUnit.NANOSECONDS);
        sweepNanos = dueNanos;
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    private void sweep0() {
        sweep = null;
        sweptNanos = clock.nanoTime();
        List<Incoming> expired = new ArrayList<>();
        Incoming next = open.earliest(sweptNanos, expired);
        if (next != null) {
            sweepBy0(next.deadlineNanos());
        }
        expired.forEach(cancel);
    }

    /** The connection has ended. */
    void end0() {
        Future<?> scheduled = sweep;
        if (scheduled != null) {
            scheduled.cancel(false);
            sweep = null;
        }
    }
}
