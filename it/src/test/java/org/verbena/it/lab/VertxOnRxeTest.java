package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.vertx.VertxSuite;

/** Vert.x on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-full")
class VertxOnRxeTest extends VertxSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    @Override
    protected int largestBytes() {
        return 4 << 20;
    }
}
