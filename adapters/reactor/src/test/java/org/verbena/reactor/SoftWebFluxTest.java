package org.verbena.reactor;

/** WebFlux on the soft provider. */
class SoftWebFluxTest extends WebFluxSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
