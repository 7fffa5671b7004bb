package org.verbena.ratis;

/** The suite on the soft provider. */
class SoftRatisTest extends RatisSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
