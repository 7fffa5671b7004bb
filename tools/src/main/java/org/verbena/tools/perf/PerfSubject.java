package org.verbena.tools.perf;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.util.function.Supplier;

/** Measures tests of one kind on one of a client's connections. */
interface PerfSubject extends AutoCloseable {
    /**
     * Prepares a test with one size.
     *
     * @param test one that this subject is for
     * @param isLatency whether messages come back or go one way
     * @param bytes of an operation
     * @param load how operations will be started
     * @return each call starts an operation, on {@link #loop()}
     */
    Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes, PerfClient.Load load)
            throws InterruptedException;

    /** The loop on which operations start and complete; valid once one was prepared. */
    EventLoop loop();

    /**
     * How many one-way messages the server has received so far; only for tests that {@link PerfTest#isCounted}. If the
     * server sends as well, a stream knows the number only when that has ended, and returns 0 before.
     */
    default long arrived() throws InterruptedException {
        throw new UnsupportedOperationException("the server does not count these");
    }

    /**
     * Makes the server send as well, as many messages at once as this end; only for tests that {@link
     * PerfTest#isBothWays()}, and once a size was prepared.
     *
     * @param bytes that size
     * @param load how operations will be started
     */
    default void beginReturn(int bytes, PerfClient.Load load) throws InterruptedException {
        throw new UnsupportedOperationException("the server does not send these");
    }

    /** How many of the server's messages have arrived since they began. Any thread. */
    default long received() {
        throw new UnsupportedOperationException("the server does not send these");
    }

    /** Ends the server's messages: returns how many it has sent, after the last one has arrived. */
    default long endReturn() throws InterruptedException {
        throw new UnsupportedOperationException("the server does not send these");
    }

    /** Closes everything that this subject has beside the connection. */
    @Override
    void close();
}
