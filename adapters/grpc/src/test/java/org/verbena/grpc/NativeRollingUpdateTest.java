package org.verbena.grpc;

/** On the software provider. */
class NativeRollingUpdateTest extends NativeRollingUpdateSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
