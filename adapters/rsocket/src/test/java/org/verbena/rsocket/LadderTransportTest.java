package org.verbena.rsocket;

import org.junit.jupiter.api.Tag;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;

/** RSocket's own test with clients that climb, to soft. For the full run: every day it runs without. */
@Tag("full")
class LadderTransportTest extends SoftTransportTest {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    RdmaEventLoopGroup newGroup(CompletionLoopOptions options) {
        return new RdmaEventLoopGroup(LadderOptions.DEFAULTS.withRungs("verbs", "soft"), 2, null, options);
    }
}
