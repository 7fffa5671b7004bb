package org.verbena.api;

class SoftIdleTest extends IdleSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
