package org.verbena.disni;

/** On the stub's iWARP device, which answers reads differently and ends connections with TCP. */
class DisniOnIwarpStubTest extends DisniOnStubTest {
    @Override
    protected String host() {
        return StubLibrary.IWARP;
    }
}
