package org.verbena.sockets;

import org.junit.jupiter.api.Tag;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;

/** The suite with sockets that climb, to soft. For the full run: every day it runs without. */
@Tag("full")
class LadderSocketTest extends RdmaSocketSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    /** Its rungs do, of which none is chosen before. */
    @Override
    protected boolean takesAPortWhenItIsBound() {
        return false;
    }

    @Override
    RdmaEventLoopGroup newGroup() {
        return new RdmaEventLoopGroup(
                LadderOptions.DEFAULTS.withRungs("verbs", "soft"), 2, null, CompletionLoopOptions.DEFAULTS);
    }
}
