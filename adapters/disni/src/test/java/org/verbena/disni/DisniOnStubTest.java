package org.verbena.disni;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** On the stub's RoCE device; nothing is left but the domain that DiSNI keeps for the process. */
class DisniOnStubTest extends DisniSuite {
    @BeforeEach
    void installStub() throws Exception {
        StubLibrary.install();
    }

    @AfterEach
    void nothingIsLeft() {
        assertThat(StubLibrary.leaks()).isIn("", "stub_pd 1");
    }

    @Override
    protected String host() {
        return StubLibrary.ROCE;
    }
}
