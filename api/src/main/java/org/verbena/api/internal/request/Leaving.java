package org.verbena.api.internal.request;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.verbena.transport.spi.LoopClock;

/**
 * Asks the clients of a server to leave, some at a time. Each then takes its requests to another server and connects
 * anew, and if all did so at once, the requests of all would wait for the connections of all.
 */
final class Leaving {
    /** So many at once: those of a small server leave without a wait. */
    private static final int TOGETHER = 8;

    /** To make and end eight connections takes two processors about half as long. */
    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(80);

    /** All are asked within this part of the time that there is: the rest is for their requests. */
    private static final int TIME_DIVISOR = 4;

    private final Function<Messenger, CompletableFuture<Void>> asking;
    private final LoopClock clock;
    private final Queue<Messenger> rest;
    private final long stepNanos;
    private final List<CompletableFuture<Void>> left = new ArrayList<>();
    private final CompletableFuture<Void> all = new CompletableFuture<>();

    private Leaving(
            Collection<Messenger> connections,
            Function<Messenger, CompletableFuture<Void>> asking,
            long mostNanos,
            LoopClock clock) {
        rest = new ArrayDeque<>(connections);
        this.asking = asking;
        this.clock = clock;
        int steps = Math.max(1, (rest.size() - 1) / TOGETHER);
        stepNanos = Math.min(STEP_NANOS, mostNanos / TIME_DIVISOR / steps);
    }

    /**
     * Begins, with the first of them.
     *
     * @param asking asks the client of one; done when it has left
     * @param mostNanos how much time there is
     * @return done when all have left
     */
    static CompletableFuture<Void> of(
            Collection<Messenger> connections,
            Function<Messenger, CompletableFuture<Void>> asking,
            long mostNanos,
            LoopClock clock) {
        Leaving leaving = new Leaving(connections, asking, mostNanos, clock);
        leaving.next();
        return leaving.all;
    }

    /** One call after the other. Those that have gone meanwhile take no time. */
    private void next() {
        int asked = 0;
        while (asked < TOGETHER && !rest.isEmpty()) {
            Messenger connection = rest.remove();
            asked += connection.channel().isActive() ? 1 : 0;
            left.add(asking.apply(connection));
        }
        if (rest.isEmpty()) {
            CompletableFuture.allOf(left.toArray(CompletableFuture<?>[]::new)).thenRun(() -> all.complete(null));
        } else {
            clock.schedule(this::next, stepNanos);
        }
    }
}
