package org.verbena.api;

import java.net.BindException;
import org.verbena.transport.RdmaException;

/** Failures as handlers of sockets expect them. */
final class SocketExceptions {
    private SocketExceptions() {}

    static BindException bind(RdmaException cause) {
        BindException refused = new BindException(cause.getMessage());
        refused.initCause(cause);
        return refused;
    }
}
