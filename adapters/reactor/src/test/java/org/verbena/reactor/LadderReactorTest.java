package org.verbena.reactor;

import org.junit.jupiter.api.Tag;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;

/** The suite with clients that climb, to soft. For the full run: every day it runs without. */
@Tag("full")
class LadderReactorTest extends ReactorSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    RdmaLoopResources newLoops() {
        return new RdmaLoopResources(
                "suite", LadderOptions.DEFAULTS.withRungs("verbs", "soft"), 3, true, CompletionLoopOptions.DEFAULTS);
    }
}
