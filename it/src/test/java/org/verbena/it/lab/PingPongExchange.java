package org.verbena.it.lab;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.QueuePairEnd;

/** As {@code ibv_rc_pingpong}: the client's end and the server's, as text, and the client's "done". */
final class PingPongExchange extends CProgramExchange {
    /** What it has without {@code -m}. */
    private static final int MTU_BYTES = 1024;

    private final CompletableFuture<Void> connected = new CompletableFuture<>();
    private CompletableFuture<Void> over;

    PingPongExchange(InetSocketAddress server) {
        super(MTU_BYTES, server);
    }

    PingPongExchange() throws IOException {
        super(MTU_BYTES);
    }

    /** The server's end is sent when its queue pair is connected. */
    @Override
    public CompletionStage<QueuePairEnd> exchange(QueuePairEnd own, MemoryDomain memory) {
        CompletableFuture<QueuePairEnd> peer = new CompletableFuture<>();
        over = onThread(() -> {
            wire().addresses(List.of(addressOf(own)), remote -> {
                peer.complete(endOf(remote.getFirst()));
                connected.join();
            });
            close();
            return null;
        });
        over.whenComplete((done, failure) -> {
            if (failure != null) {
                peer.completeExceptionally(failure);
            }
        });
        return peer;
    }

    @Override
    public CompletionStage<Void> ready() {
        connected.complete(null);
        return over;
    }

    @Override
    public void giveUp() {
        connected.cancel(false);
        super.giveUp();
    }
}
