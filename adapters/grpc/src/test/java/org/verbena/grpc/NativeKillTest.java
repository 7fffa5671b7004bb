package org.verbena.grpc;

/** On the software provider. */
class NativeKillTest extends NativeKillSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
