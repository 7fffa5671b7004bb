package org.verbena.sockets;

/** Sockets on the soft provider. */
class SoftSocketTest extends RdmaSocketSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
