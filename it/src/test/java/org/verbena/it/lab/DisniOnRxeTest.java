package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.disni.DisniSuite;

/** DiSNI and DaRPC over soft RoCE, without DiSNI's C library. */
@Tag("lab")
@Tag("lab-full")
class DisniOnRxeTest extends DisniSuite {
    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }
}
