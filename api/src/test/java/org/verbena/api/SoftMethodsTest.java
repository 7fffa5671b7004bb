package org.verbena.api;

class SoftMethodsTest extends MethodsSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
