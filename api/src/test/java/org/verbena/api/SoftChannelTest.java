package org.verbena.api;

class SoftChannelTest extends ChannelSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
