package org.verbena.api;

class SoftCopiesTest extends CopiesSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
