package org.verbena.api;

class SoftShortFormTest extends ShortFormSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
