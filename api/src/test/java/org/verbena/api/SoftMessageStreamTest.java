package org.verbena.api;

class SoftMessageStreamTest extends MessageStreamSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
