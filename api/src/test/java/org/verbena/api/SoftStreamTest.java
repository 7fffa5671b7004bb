package org.verbena.api;

/** The stream suite on the soft provider. */
class SoftStreamTest extends RdmaStreamSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
