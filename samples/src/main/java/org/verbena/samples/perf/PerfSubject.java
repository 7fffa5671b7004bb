package org.verbena.samples.perf;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.util.function.Supplier;

/** What a client measures on one of its connections: tests of one kind. */
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

    /** The loop that operations are started on and complete on; valid once one was prepared. */
    EventLoop loop();

    /** How many one-way messages the server has had so far; only for tests that {@link PerfTest#isCounted()}. */
    default long arrived() throws InterruptedException {
        throw new UnsupportedOperationException("the server does not count these");
    }

    /** Ends what this subject has beside the connection. */
    @Override
    void close();
}
