package org.verbena.api.ring;

class SoftRecordRingTest extends RecordRingSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
