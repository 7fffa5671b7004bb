package org.verbena.api.internal.client;

import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.EventExecutor;
import org.verbena.api.internal.loop.RdmaEventLoop;

/** The result of an operation that is not bound to one connection. */
final class Outcome<T> extends DefaultPromise<T> {
    /**
     * Creates one.
     *
     * @param notifier runs its listeners
     */
    Outcome(EventExecutor notifier) {
        super(notifier);
    }

    @Override
    protected void checkDeadLock() {
        RdmaEventLoop.checkMayWait(executor());
    }
}
