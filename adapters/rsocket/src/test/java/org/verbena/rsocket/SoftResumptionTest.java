package org.verbena.rsocket;

/** The same with connections that break and are resumed. */
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
