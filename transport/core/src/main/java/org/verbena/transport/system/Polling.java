package org.verbena.transport.system;

import io.netty.channel.IoHandlerContext;

/** What a handler is run with that must not block: it handles what is ready. */
public enum Polling implements IoHandlerContext {
    /** Always the same. */
    CONTEXT;

    @Override
    public boolean canBlock() {
        return false;
    }

    @Override
    public long delayNanos(long currentTimeNanos) {
        return 0;
    }

    @Override
    public long deadlineNanos() {
        return -1;
    }
}
