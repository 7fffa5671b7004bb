package org.verbena.api;

class SoftRequestWindowTest extends RequestWindowSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
