package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.verbena.api.internal.loop.LoopFuture;

/** The connections of a server, from their requests on: none of them outlives it. Any thread. */
public final class ServerChildren {
    private final Set<Channel> open = ConcurrentHashMap.newKeySet();
    private volatile boolean closing;

    /** Adds an accepted connection, before its handshake. It is closed if the server closes. */
    public void add(Channel child) {
        open.add(child);
        child.closeFuture().addListener(closed -> open.remove(child));
        if (closing) {
            child.close();
        }
    }

    /** Closes them, and any that are added later. Done when all of the present ones have closed. */
    public CompletableFuture<Void> close() {
        closing = true;
        return LoopFuture.of(
                CompletableFuture.allOf(open.stream().map(ShortForm::close).toArray(CompletableFuture<?>[]::new)));
    }
}
