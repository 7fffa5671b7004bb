package org.verbena.api;

class SoftCancellationTest extends CancellationSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
