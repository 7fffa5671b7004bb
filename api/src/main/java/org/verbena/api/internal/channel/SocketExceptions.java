package org.verbena.api.internal.channel;

import java.net.BindException;
import org.verbena.transport.RdmaException;

/** Failures as handlers of sockets expect them. */
public final class SocketExceptions {
    private SocketExceptions() {}

    public static BindException bind(RdmaException cause) {
        BindException refused = new BindException(cause.getMessage());
        refused.initCause(cause);
        return refused;
    }
}
