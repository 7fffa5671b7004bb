package org.verbena.api;

class SoftManyChannelsTest extends ManyChannelsSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
