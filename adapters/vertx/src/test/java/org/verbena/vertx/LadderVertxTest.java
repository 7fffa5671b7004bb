package org.verbena.vertx;

import org.junit.jupiter.api.Tag;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;

/** The suite with clients that climb, to soft. For the full run: every day it runs without. */
@Tag("full")
class LadderVertxTest extends VertxSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    RdmaTransport transport() {
        return new RdmaTransport(LadderOptions.DEFAULTS.withRungs("verbs", "soft"), CompletionLoopOptions.DEFAULTS);
    }
}
