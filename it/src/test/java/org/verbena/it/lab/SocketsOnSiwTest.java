package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.sockets.RdmaSocketSuite;

/** Blocking sockets on verbs over soft iWARP. */
@Tag("lab")
@Tag("lab-full")
class SocketsOnSiwTest extends RdmaSocketSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.SIW.address();
    }

    @Override
    protected int manyBytes() {
        return 2 << 20;
    }

    @Override
    protected int tooManyBytes() {
        return 16 << 20;
    }

    @Override
    protected int manySockets() {
        return 10;
    }
}
