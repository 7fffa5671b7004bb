package org.verbena.transport.verbs;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.ConnectionException;

/**
 * Makes address handles, on threads of its own. On RoCE the kernel asks the network for the peer's Ethernet address
 * meanwhile, which takes seconds without an answer. A datagram names its sender, so anyone who can send one could hold
 * up the thread that does this. Any thread.
 */
final class AddressHandles {
    /** For peers that have not answered a look-up: two, so that one absent peer does not hold up all others. */
    private static final int THREADS = 2;

    /** How many may wait: more than programs use at a time, and few enough to cost nothing. */
    static final int MAX_WAITING = 1024;

    private static final long IDLE_SECONDS = 10;

    /** For peers that have answered a look-up, and groups: the kernel knows their addresses. */
    private final ThreadPoolExecutor answered = threads(1);

    private final ThreadPoolExecutor claimed = threads(THREADS);

    AddressHandles() {}

    private static ThreadPoolExecutor threads(int count) {
        ThreadPoolExecutor made = new ThreadPoolExecutor(
                count, count, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue<>(MAX_WAITING), task -> {
                    Thread thread = new Thread(task, "verbena-addresses");
                    thread.setDaemon(true);
                    return thread;
                });
        made.allowCoreThreadTimeOut(true);
        return made;
    }

    /**
     * Makes a handle.
     *
     * @param hasAnswered whether the peer has answered a look-up; otherwise it may not exist
     * @param creation makes it; must not throw
     * @throws ConnectionException too many wait, or no thread can be started
     */
    void execute(boolean hasAnswered, Runnable creation) {
        try {
            (hasAnswered ? answered : claimed).execute(creation);
        } catch (RejectedExecutionException full) {
            throw new ConnectionException(
                    MAX_WAITING + " addresses are being prepared already, and the network does not answer for them: try"
                            + " again later, and answer only peers that you know",
                    full);
        } catch (Throwable noThread) {
            throw new ConnectionException(
                    "no thread can be started to prepare an address: " + noThread.getMessage(), noThread);
        }
    }

    /** For tests: ends the threads, once they have made what they make. A handle keeps its device from closing. */
    void close() {
        answered.close();
        claimed.close();
    }
}
