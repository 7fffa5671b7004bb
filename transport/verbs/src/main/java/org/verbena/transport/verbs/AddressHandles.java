package org.verbena.transport.verbs;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.spi.ConnectionException;

/**
 * Makes address handles, on threads of its own. On RoCE the kernel asks the network for the peer's Ethernet address
 * meanwhile, which takes seconds if nobody answers; a datagram names its sender, so whoever can send one could hold up
 * the thread that does this. Any thread.
 */
final class AddressHandles {
    /** Two, so that one host that does not answer does not hold up all others. */
    private static final int THREADS = 2;

    /** How many may wait: more than programs use at a time, and few enough to cost nothing. */
    static final int MAX_WAITING = 1024;

    private static final long IDLE_SECONDS = 10;

    private final ThreadPoolExecutor threads;

    AddressHandles() {
        threads = new ThreadPoolExecutor(
                THREADS, THREADS, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue<>(MAX_WAITING), task -> {
                    Thread made = new Thread(task, "verbena-addresses");
                    made.setDaemon(true);
                    return made;
                });
        threads.allowCoreThreadTimeOut(true);
    }

    /**
     * Has a handle made.
     *
     * @param creation makes it; must not throw
     * @throws ConnectionException too many wait
     */
    void execute(Runnable creation) {
        try {
            threads.execute(creation);
        } catch (RejectedExecutionException full) {
            throw new ConnectionException(
                    MAX_WAITING + " addresses are being prepared already, and the network does not answer for them: try"
                            + " again later, and answer only peers that you know",
                    full);
        }
    }

    /** For tests: ends the threads. */
    void close() {
        threads.shutdown();
    }
}
