package org.verbena.transport.verbs;

import io.netty.util.concurrent.DefaultThreadFactory;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ProviderException;

/**
 * Calls that connect and may block. On InfiniBand and RoCE, resolving a route waits for ibacm. On iWARP the connect
 * call blocks: siw makes its TCP connection within the call, and a host that does not answer blocks it for two minutes,
 * whether or not its outcome is still awaited. So each call has a thread, an address has few of them, and further calls
 * wait without a thread and can be cancelled.
 *
 * <pre>
 *            a thread is free              the call returns
 *   WAITING ------------------&gt; BLOCKING ------------------&gt; over
 *      |
 *      +--cancel()--&gt; over
 * </pre>
 *
 * <p>Confined to the thread of its connection loop, except for the calls themselves.
 */
final class BlockingConnects {
    private static final Logger LOG = LoggerFactory.getLogger(BlockingConnects.class);

    /**
     * Calls to one address at a time: several, so that one lost SYN does not hold up all; few, so that a silent host
     * occupies few threads.
     */
    static final int MAX_PER_ADDRESS = 4;

    /** Calls at a time: 32 silent addresses before others have to wait, for some 100 KiB of memory a thread. */
    static final int MAX_CALLS = 128;

    private static final long IDLE_SECONDS = 10;

    /** One connect call. */
    abstract static class Call {
        private final InetSocketAddress address;

        Call(InetSocketAddress address) {
            this.address = address;
        }

        /**
         * The call is about to be made. The connection loop's thread.
         *
         * @return false if it must not be made
         */
        abstract boolean begin();

        /** Makes the call, on a thread of its own. Must not throw. */
        abstract void connect();

        /**
         * It was not made, though it had begun. The connection loop's thread.
         *
         * @param why there is no thread for it
         */
        abstract void refused(RuntimeException why);

        /**
         * It has to wait. The connection loop's thread.
         *
         * @param reason what for, in words
         */
        abstract void waiting(String reason);
    }

    /** The calls to one address, running and waiting. */
    private static final class Destination {
        private int calls;
        private final ArrayDeque<Call> waiting = new ArrayDeque<>();
    }

    private final Executor connectionLoop;
    private final ThreadPoolExecutor threads;
    private final Map<InetSocketAddress, Destination> destinations = new LinkedHashMap<>();
    private int calls;

    BlockingConnects(Executor connectionLoop) {
        this(connectionLoop, new DefaultThreadFactory("verbena-connect", true));
    }

    /** For tests. */
    BlockingConnects(Executor connectionLoop, ThreadFactory factory) {
        this.connectionLoop = connectionLoop;
        threads = new ThreadPoolExecutor(
                MAX_CALLS, MAX_CALLS, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), factory);
        threads.allowCoreThreadTimeOut(true);
    }

    /** Makes a call as soon as it may be made. */
    void submit(Call call) {
        Destination destination = destinations.computeIfAbsent(call.address, missing -> new Destination());
        if (mayBegin(destination)) {
            begin(destination, call);
        } else {
            destination.waiting.add(call);
            String what = VerbsProvider.format(call.address);
            call.waiting(
                    destination.calls == MAX_PER_ADDRESS
                            ? "waiting for " + MAX_PER_ADDRESS + " earlier connects to " + what
                                    + ", which the kernel has not abandoned yet: does that host answer?"
                            : "waiting for " + MAX_CALLS + " earlier connects, to " + destinations.size()
                                    + " addresses, which the kernel has not abandoned yet: do those hosts answer?");
        }
    }

    /**
     * Withdraws a call.
     *
     * @return false if it is made already, and its outcome has to be waited for
     */
    boolean cancel(Call call) {
        Destination destination = destinations.get(call.address);
        if (destination == null || !destination.waiting.remove(call)) {
            return false;
        }
        forget(call.address, destination);
        return true;
    }

    /** For tests: ends the threads. */
    void close() {
        threads.shutdown();
    }

    private boolean mayBegin(Destination destination) {
        return destination.calls < MAX_PER_ADDRESS && calls < MAX_CALLS;
    }

    private void begin(Destination destination, Call call) {
        destination.calls++;
        calls++;
        boolean wanted = false;
        try {
            wanted = call.begin();
        } finally {
            if (!wanted) {
                destination.calls--;
                calls--;
                forget(call.address, destination);
            }
        }
        if (!wanted) {
            return;
        }
        try {
            threads.execute(() -> {
                try {
                    call.connect();
                } finally {
                    connectionLoop.execute(() -> over(call.address, destination));
                }
            });
        } catch (Throwable noThread) {
            connectionLoop.execute(() -> over(call.address, destination));
            call.refused(new ProviderException(
                    "no thread can be started for a call that may block: " + noThread.getMessage(), noThread));
        }
    }

    private void over(InetSocketAddress address, Destination destination) {
        destination.calls--;
        calls--;
        forget(address, destination);
        // Calls that wait for this address, or for any call to end, the oldest address first.
        Iterator<Destination> candidates = new ArrayDeque<>(destinations.values()).iterator();
        while (candidates.hasNext() && calls < MAX_CALLS) {
            Destination candidate = candidates.next();
            while (mayBegin(candidate) && !candidate.waiting.isEmpty()) {
                try {
                    begin(candidate, candidate.waiting.remove());
                } catch (Throwable failure) {
                    LOG.error("A connect that waited could not begin", failure);
                }
            }
        }
    }

    private void forget(InetSocketAddress address, Destination destination) {
        if (destination.calls == 0 && destination.waiting.isEmpty()) {
            destinations.remove(address);
        }
    }
}
