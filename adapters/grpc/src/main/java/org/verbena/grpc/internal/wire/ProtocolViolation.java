package org.verbena.grpc.internal.wire;

import java.io.Serial;

/** A peer broke the rules of the wire. The connection ends. */
public final class ProtocolViolation extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates one. It has no stack trace, since any stranger can cause many.
     *
     * @param what the peer did
     */
    public ProtocolViolation(String what) {
        super(what, null, false, false);
    }
}
