package org.verbena.api.internal.request;

import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.transport.spi.LoopClock;

/** The connections of a server, from their requests on: none of them outlives it. Any thread. */
public final class ServerChildren {
    /** The connections that are open, or have handlers that run. */
    private final Set<Messenger> present = ConcurrentHashMap.newKeySet();

    private volatile boolean closing;

    /** Whether a connection that was asked to end has ended without all answers. */
    private volatile boolean unanswered;

    /** Adds an accepted connection, before its handshake. It is closed if the server closes or is leaving. */
    public void add(Messenger child) {
        present.add(child);
        child.channel().closeFuture().addListener(closed -> closed(child));
        if (closing) {
            child.channel().close();
        }
    }

    private void closed(Messenger child) {
        if (child.handlers().isIdle()) {
            present.remove(child);
        } else {
            child.drain("").thenRun(() -> present.remove(child));
        }
    }

    /** Closes them, and any that are added later. Done when all of the present ones have closed. */
    public CompletableFuture<Void> close() {
        closing = true;
        return LoopFuture.of(CompletableFuture.allOf(
                present.stream().map(child -> ShortForm.close(child.channel())).toArray(CompletableFuture<?>[]::new)));
    }

    /**
     * Asks their clients to leave, and closes any that are added later. Done when all of the present ones have closed
     * and none of their handlers runs.
     *
     * @param maxNanos how much time there is
     */
    public CompletableFuture<Void> drain(String reason, long maxNanos, LoopClock clock) {
        closing = true;
        return LeaveSchedule.of(present, child -> child.drain(reason).thenAccept(this::ended), maxNanos, clock);
    }

    private void ended(boolean answered) {
        if (!answered) {
            unanswered = true;
        }
    }

    /**
     * Closes those that are left, whose requests are refused as far as they have not begun.
     *
     * @return whether all that had arrived on these and on those before was answered
     */
    public CompletableFuture<Boolean> end() {
        List<CompletableFuture<Boolean>> all =
                present.stream().map(Messenger::end).toList();
        return CompletableFuture.allOf(all.toArray(CompletableFuture<?>[]::new))
                .thenApply(none -> all.stream().allMatch(CompletableFuture::join) && !unanswered);
    }
}
