package org.verbena.api;

class SoftRequestFailureTest extends RequestFailureSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
