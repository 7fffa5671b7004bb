package org.verbena.api;

class SoftHandlerTest extends HandlerSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
