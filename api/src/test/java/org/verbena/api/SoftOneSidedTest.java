package org.verbena.api;

class SoftOneSidedTest extends OneSidedSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
