package org.verbena.api;

class SoftSeveralServersTest extends SeveralServersSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
