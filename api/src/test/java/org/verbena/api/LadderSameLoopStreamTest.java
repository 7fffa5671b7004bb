package org.verbena.api;

/** On a rung that shares the loop of the channel above it. */
class LadderSameLoopStreamTest extends LadderStreamSuite {
    @Override
    RdmaEventLoopGroup newClientGroup() {
        return new RdmaEventLoopGroup("soft", 3);
    }

    @Override
    String rung() {
        return "soft";
    }
}
