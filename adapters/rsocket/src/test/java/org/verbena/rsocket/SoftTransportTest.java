package org.verbena.rsocket;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** RSocket's own test on the soft provider. */
class SoftTransportTest extends RSocketTransportSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    /** It takes as long as all others together. */
    @DisplayName("makes 1 requestChannel request with 256 payloads")
    @Test
    @Tag("full")
    @Override
    public void requestChannel256() {
        super.requestChannel256();
    }

    /** What 20,000 prove, for as long as all others take together. */
    @DisplayName("makes 1 requestChannel request with 200,000 payloads")
    @Test
    @Tag("full")
    @Override
    public void requestChannel200_000() {
        super.requestChannel200_000();
    }
}
