package org.verbena.api;

class SoftRawTest extends RawSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    protected boolean repeatsSends() {
        return false;
    }

    @Override
    protected int greatestConnectBytes() {
        return 508;
    }

    @Override
    protected int greatestAcceptBytes() {
        return 500;
    }
}
