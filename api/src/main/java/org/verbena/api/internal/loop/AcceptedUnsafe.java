package org.verbena.api.internal.loop;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.RdmaProvider;

/** The unsafe of a channel that may need a loop of a certain provider. */
public interface AcceptedUnsafe {

    /** The provider of the request that the channel is to accept; null for one that connects. Any thread. */
    @Nullable RdmaProvider acceptedFrom();
}
