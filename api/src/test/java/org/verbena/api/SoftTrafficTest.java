package org.verbena.api;

class SoftTrafficTest extends TrafficSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
