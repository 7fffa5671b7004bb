package org.verbena.api;

class SoftInterceptorTest extends InterceptorSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
