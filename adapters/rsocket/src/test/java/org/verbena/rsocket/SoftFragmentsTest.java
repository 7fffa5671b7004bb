package org.verbena.rsocket;

import org.junit.jupiter.api.Tag;

/** The same with frames cut into fragments, and every buffer tracked. */
@Tag("full")
class SoftFragmentsTest extends RSocketTransportSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    protected boolean fragments() {
        return true;
    }

    /** No test here: a dozen of its threads spin for a minute, and {@link SoftTransportTest} has it. */
    @Override
    public void requestChannel256() {}
}
