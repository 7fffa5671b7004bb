package org.verbena.api;

class SoftKilledServersTest extends KilledServersSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
