package org.verbena.api;

class SoftServerMemoryTest extends ServerMemorySuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    protected int many() {
        return 1000;
    }
}
