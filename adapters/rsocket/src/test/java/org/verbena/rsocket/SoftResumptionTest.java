package org.verbena.rsocket;

import org.junit.jupiter.api.Tag;

/** The same with connections that break and are resumed. */
@Tag("full")
class SoftResumptionTest extends RSocketTransportSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    protected boolean resumes() {
        return true;
    }

    /** No test here: a dozen of its threads spin for a minute, and {@link SoftTransportTest} has it. */
    @Override
    public void requestChannel256() {}
}
