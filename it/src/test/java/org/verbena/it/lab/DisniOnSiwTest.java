package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.disni.DisniSuite;

/** DiSNI and DaRPC over soft iWARP, without DiSNI's C library. */
@Tag("lab")
@Tag("lab-full")
class DisniOnSiwTest extends DisniSuite {
    @Override
    protected String host() {
        return LabDevice.SIW.address();
    }
}
