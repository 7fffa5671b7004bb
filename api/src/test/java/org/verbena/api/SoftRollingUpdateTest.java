package org.verbena.api;

class SoftRollingUpdateTest extends RollingUpdateSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
