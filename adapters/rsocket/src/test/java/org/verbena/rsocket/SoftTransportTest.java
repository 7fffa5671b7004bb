package org.verbena.rsocket;

/** RSocket's own test on the soft provider. */
class SoftTransportTest extends RSocketTransportSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
