package org.verbena.reactor;

/** The suite on the soft provider. */
class SoftReactorTest extends ReactorSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
