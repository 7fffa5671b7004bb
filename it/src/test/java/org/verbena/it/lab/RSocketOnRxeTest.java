package org.verbena.it.lab;

import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.rsocket.RSocketTransportSuite;

/** RSocket's own test of transports on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-full")
class RSocketOnRxeTest extends RSocketTransportSuite {
    private static final String TOO_LONG = "takes minutes in the guest";

    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    @Test
    @Disabled(TOO_LONG)
    @Override
    public void requestChannel256() {}

    @Test
    @Disabled(TOO_LONG)
    @Override
    public void requestChannel200_000() {}
}
