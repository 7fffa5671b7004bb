package org.verbena.api;

import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopFuture;

/** A client that connects. Completing it in any other way ends the attempt. */
final class ConnectingClient extends LoopFuture<RdmaClient> {
    private final RdmaClient client;

    private ConnectingClient(RdmaClient client) {
        this.client = client;
    }

    static CompletableFuture<RdmaClient> of(RdmaClient client) {
        ConnectingClient connecting = new ConnectingClient(client);
        client.first().whenCompleteAsync((up, failure) -> connecting.end(failure), client.elsewhere());
        return connecting;
    }

    private void end(@Nullable Throwable failure) {
        if (failure != null) {
            client.closeAsync();
            giveFailure(failure);
        } else if (!give(client)) {
            client.closeAsync();
        }
    }

    @Override
    protected void stop() {
        client.closeAsync();
    }
}
