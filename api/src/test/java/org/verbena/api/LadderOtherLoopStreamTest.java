package org.verbena.api;

import java.util.List;
import java.util.Set;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;

/** On a rung that has another loop than the channel above it: soft's, under a channel on a better provider's. */
class LadderOtherLoopStreamTest extends LadderStreamSuite {
    @Override
    RdmaEventLoopGroup newClientGroup() {
        return new RdmaEventLoopGroup(
                new ProviderSet(
                        List.of(
                                new ProviderChoice(new StagedProvider(), "for a test"),
                                ProviderChoice.choose("soft", null)),
                        Set.of()),
                3,
                null,
                CompletionLoopOptions.DEFAULTS);
    }

    @Override
    String rung() {
        return "soft";
    }
}
