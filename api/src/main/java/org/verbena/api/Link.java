package org.verbena.api;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A connection of an {@link RdmaClient}.
 *
 * @param channel connected
 * @param messenger in its pipeline
 * @param ladder the rung that it is; null without a ladder
 */
record Link(
        RdmaChannel channel, Messenger messenger, @Nullable LadderResult ladder) {

    /** That of a channel which is connected. */
    static Link of(RdmaChannel channel) {
        return new Link(
                channel, Objects.requireNonNull(channel.pipeline().get(Messenger.class)), LadderResult.of(channel));
    }
}
