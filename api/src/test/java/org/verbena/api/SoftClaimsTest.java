package org.verbena.api;

class SoftClaimsTest extends ClaimsSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
