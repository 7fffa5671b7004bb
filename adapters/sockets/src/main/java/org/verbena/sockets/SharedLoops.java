package org.verbena.sockets;

import io.netty.util.concurrent.DefaultThreadFactory;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;

/**
 * The loops of all sockets whose factory was made without any. Created on first use, because choosing a provider may
 * fail.
 */
final class SharedLoops {
    private static @Nullable RdmaEventLoopGroup made;

    private SharedLoops() {}

    /** Makes them again if that has failed: by a static initializer it would have failed for ever. */
    static synchronized RdmaEventLoopGroup get() {
        if (made == null) {
            made = new RdmaEventLoopGroup(
                    ProviderSet.choose(ProviderChoice.configured(), null),
                    0,
                    new DefaultThreadFactory("verbena-sockets", true),
                    CompletionLoopOptions.DEFAULTS);
        }
        return made;
    }
}
