package org.verbena.api;

class SoftFairLoopTest extends FairLoopSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
