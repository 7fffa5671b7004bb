package org.verbena.api.queuepair;

import java.io.EOFException;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.Threads;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * Where a {@link TcpQueuePairExchange} waits for its peer. Others may connect as well: port scanners, load balancers,
 * programs with a wrong port. So each connection has a thread that reads from it, and the first connection with a valid
 * message is the peer's. The others are closed, without harm.
 */
final class ExchangeAcceptor {
    private static final Logger LOG = LoggerFactory.getLogger(TcpQueuePairExchange.class);

    /** Limits the log lines that anyone who reaches the port can cause. */
    private static final RateLimitedLog STRANGERS = new RateLimitedLog(LOG);

    /**
     * How many connections may be open that have sent nothing yet. One more closes the oldest: a peer sends its end as
     * soon as it has connected.
     */
    static final int MAX_VISITORS = 16;

    /** The peer. */
    record Peer(Socket socket, QueuePairEnd end) {}

    private final ServerSocket listener;
    private final Object lock = new Object();

    /** The oldest first. Guarded by the lock. */
    private final Set<Socket> visitors = new LinkedHashSet<>();

    ExchangeAcceptor(ServerSocket listener) {
        this.listener = listener;
    }

    /**
     * Waits for the peer, and closes the listener and all other connections then.
     *
     * @throws IOException the listener was closed
     */
    Peer await() throws IOException {
        CompletableFuture<Peer> first = new CompletableFuture<>();
        try {
            while (true) {
                Socket visitor = listener.accept();
                enter(visitor);
                Threads.start(LoopClock.system(), "verbena-exchange", () -> receive(visitor, first));
            }
        } catch (IOException closed) {
            if (!first.isDone()) {
                throw closed;
            }
            return first.resultNow();
        } finally {
            TcpQueuePairExchange.closeQuietly(listener);
            leaveAll();
        }
    }

    private void enter(Socket visitor) {
        Socket oldest = null;
        synchronized (lock) {
            visitors.add(visitor);
            if (visitors.size() > MAX_VISITORS) {
                oldest = visitors.iterator().next();
                visitors.remove(oldest);
            }
        }
        TcpQueuePairExchange.closeQuietly(oldest);
    }

    /** Returns false if it was closed from here. */
    private boolean leave(Socket visitor) {
        synchronized (lock) {
            return visitors.remove(visitor);
        }
    }

    private void leaveAll() {
        List<Socket> left;
        synchronized (lock) {
            left = List.copyOf(visitors);
            visitors.clear();
        }
        left.forEach(TcpQueuePairExchange::closeQuietly);
    }

    private void receive(Socket visitor, CompletableFuture<Peer> first) {
        try {
            QueuePairEnd end = TcpQueuePairExchange.readEnd(visitor);
            if (leave(visitor) && first.complete(new Peer(visitor, end))) {
                TcpQueuePairExchange.closeQuietly(listener); // which ends the wait
                return;
            }
        } catch (EOFException silent) {
            leave(visitor);
            LOG.debug("{}: {} said nothing", listener, visitor, silent);
        } catch (IOException | IllegalArgumentException stranger) {
            if (leave(visitor)) {
                STRANGERS.warn("the exchange at TCP " + listener.getLocalSocketAddress() + " turned "
                        + visitor.getRemoteSocketAddress() + " away and goes on waiting for its peer: "
                        + stranger.getMessage());
            }
        }
        TcpQueuePairExchange.closeQuietly(visitor);
    }
}
