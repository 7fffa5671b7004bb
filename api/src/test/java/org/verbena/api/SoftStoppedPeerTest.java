package org.verbena.api;

class SoftStoppedPeerTest extends StoppedPeerSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
