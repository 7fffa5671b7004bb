package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.ratis.RatisSuite;

/** Apache Ratis on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-full")
@Tag("lab-long")
class RatisOnRxeTest extends RatisSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    /** All servers and the client are in one slow guest. */
    @Override
    protected long electionMillis() {
        return 5_000;
    }
}
