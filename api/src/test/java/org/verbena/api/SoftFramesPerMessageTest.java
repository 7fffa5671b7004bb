package org.verbena.api;

class SoftFramesPerMessageTest extends FramesPerMessageSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
