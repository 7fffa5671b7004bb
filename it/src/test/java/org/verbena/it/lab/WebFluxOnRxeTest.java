package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.reactor.WebFluxSuite;

/** Spring WebFlux on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-full")
class WebFluxOnRxeTest extends WebFluxSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }
}
