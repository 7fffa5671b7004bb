package org.verbena.sockets;

/** The suite on the soft provider. */
class SoftPostgresTest extends PostgresSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
