package org.verbena.grpc;

import org.junit.jupiter.api.Tag;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;

/** The gRPC suite with clients that climb, to soft. For the full run: every day it runs without. */
@Tag("full")
class LadderGrpcSuiteTest extends GrpcSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    RdmaEventLoopGroup newGroup() {
        return new RdmaEventLoopGroup(
                LadderOptions.DEFAULTS.withRungs("verbs", "soft"), 3, null, CompletionLoopOptions.DEFAULTS);
    }
}
