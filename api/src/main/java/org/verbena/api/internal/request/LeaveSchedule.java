package org.verbena.api.internal.request;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.verbena.api.internal.loop.Threads;
import org.verbena.transport.spi.LoopClock;

/**
 * Asks the clients of a server to leave, one after the other. Each then takes its requests to another server and
 * connects again, and if all did so at once, the requests of all would wait for the connections of all.
 */
final class LeaveSchedule {
    /** To make and end a connection takes two processors about half as long. */
    private static final long MAX_BETWEEN_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** All are asked within this part of the time that there is: the rest is for their requests. */
    private static final int TIME_DIVISOR = 4;

    private final Function<Messenger, CompletableFuture<Void>> asking;
    private final LoopClock clock;
    private final Queue<Messenger> rest;
    private final long betweenNanos;
    private final List<CompletableFuture<Void>> left = new ArrayList<>();
    private final CompletableFuture<Void> all = new CompletableFuture<>();

    /** When the next one is asked. */
    private long dueNanos;

    private LeaveSchedule(
            Collection<Messenger> connections,
            Function<Messenger, CompletableFuture<Void>> asking,
            long maxNanos,
            LoopClock clock) {
        rest = new ArrayDeque<>(connections);
        this.asking = asking;
        this.clock = clock;
        betweenNanos = Math.min(MAX_BETWEEN_NANOS, maxNanos / TIME_DIVISOR / Math.max(1, rest.size() - 1));
        dueNanos = clock.nanoTime();
    }

    /**
     * Begins, with the first of them.
     *
     * @param asking asks the client of one; done when it has left
     * @param maxNanos how much time there is
     * @return done when all have left
     */
    static CompletableFuture<Void> of(
            Collection<Messenger> connections,
            Function<Messenger, CompletableFuture<Void>> asking,
            long maxNanos,
            LoopClock clock) {
        LeaveSchedule leaving = new LeaveSchedule(connections, asking, maxNanos, clock);
        leaving.next();
        return leaving.all;
    }

    /** Asks those whose turn has come; those that have gone meanwhile take no time. One call after the other. */
    private void next() {
        long nowNanos = clock.nanoTime();
        while (!rest.isEmpty() && dueNanos - nowNanos <= 0) {
            Messenger connection = rest.remove();
            dueNanos += connection.channel().isActive() ? betweenNanos : 0;
            left.add(asking.apply(connection));
        }
        if (rest.isEmpty()) {
            CompletableFuture.allOf(left.toArray(CompletableFuture<?>[]::new)).thenRun(() -> all.complete(null));
        } else {
            Threads.schedule(clock, this::next, dueNanos - nowNanos);
        }
    }
}
