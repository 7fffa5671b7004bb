package org.verbena.api;

class SoftShortFormLimitsTest extends ShortFormLimitsSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
