package org.verbena.api;

class SoftObservabilityTest extends ObservabilitySuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
