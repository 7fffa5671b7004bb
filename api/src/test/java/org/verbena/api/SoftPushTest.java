package org.verbena.api;

class SoftPushTest extends PushSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    protected int many() {
        return 1000;
    }
}
