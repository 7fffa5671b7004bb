package org.verbena.api;

class SoftLeavingServersTest extends LeavingServersSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
