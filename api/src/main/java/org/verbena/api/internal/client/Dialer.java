package org.verbena.api.internal.client;

import java.net.SocketAddress;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.spi.LoopClock;

/** Makes a client's connections. Any thread. */
public interface Dialer {
    /**
     * Connects, and waits until that is done. An interrupt ends the attempt.
     *
     * @param address of the server
     * @param rungs of the ladder that may be used, if a device serves the address; null for all
     * @param beganNanos when the connect timeout began
     * @return connected
     * @throws RuntimeException it could not
     */
    Connected connect(SocketAddress address, @Nullable List<String> rungs, long beganNanos);

    /** The clock of its loops. */
    LoopClock clock();

    /** The ladder that it connects with; null if with none. */
    @Nullable LadderOptions ladder();

    /** Whether the loops have ended, or are ending: then there will be no more connections. */
    boolean isEnding();

    /** Leaves the loops that clients share. Done when they have ended, if this was the last client. */
    CompletableFuture<Void> close();
}
