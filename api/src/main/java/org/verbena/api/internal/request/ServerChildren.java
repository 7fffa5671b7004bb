package org.verbena.api.internal.request;

import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.verbena.api.internal.loop.LoopFuture;

/** The connections of a server, from their requests on: none of them outlives it. Any thread. */
public final class ServerChildren {
    private final Set<Messenger> open = ConcurrentHashMap.newKeySet();
    private volatile boolean closing;

    /** Adds an accepted connection, before its handshake. It is closed if the server closes or is leaving. */
    public void add(Messenger child) {
        open.add(child);
        child.channel().closeFuture().addListener(closed -> open.remove(child));
        if (closing) {
            child.channel().close();
        }
    }

    /** Closes them, and any that are added later. Done when all of the present ones have closed. */
    public CompletableFuture<Void> close() {
        closing = true;
        return LoopFuture.of(CompletableFuture.allOf(
                open.stream().map(child -> ShortForm.close(child.channel())).toArray(CompletableFuture<?>[]::new)));
    }

    /**
     * Asks their clients to leave, and closes any that are added later. Done when all of the present ones have closed
     * and none of their handlers runs.
     */
    public CompletableFuture<Void> drain(String reason) {
        closing = true;
        return CompletableFuture.allOf(
                open.stream().map(child -> child.drain(reason)).toArray(CompletableFuture<?>[]::new));
    }

    /** Closes those that are left, whose requests are refused as far as they have not begun. */
    public CompletableFuture<Boolean> end() {
        List<CompletableFuture<Boolean>> all = open.stream().map(Messenger::end).toList();
        return CompletableFuture.allOf(all.toArray(CompletableFuture<?>[]::new))
                .thenApply(none -> all.stream().allMatch(CompletableFuture::join));
    }
}
