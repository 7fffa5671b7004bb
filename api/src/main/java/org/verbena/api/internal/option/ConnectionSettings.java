package org.verbena.api.internal.option;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RdmaProvider;

/** A channel's options, as far as connecting and accepting need them. */
public interface ConnectionSettings {
    /**
     * The options of the protocol.
     *
     * @throws IllegalArgumentException they do not fit together
     */
    MessageOptions messageOptions();

    /** What this end's program announces in the handshake. */
    int announced();

    /** The keys, one of which a peer has to prove; null for none. */
    @Nullable PreSharedKeys preSharedKeys();

    /**
     * The private data to connect with: the program's, or this.
     *
     * @throws IllegalArgumentException the program has set some, and the framing has its own
     */
    byte[] connectData(byte[] ofProtocol);

    /**
     * The private data to accept with: the program's, or this.
     *
     * @throws IllegalArgumentException the program has set some, and the framing has its own
     */
    byte[] acceptData(byte[] ofProtocol);

    /** The options of the provider. */
    EndpointOptions endpointOptions(RdmaProvider provider, byte[] privateData);

    /** The time limit for connecting; 0 for none. */
    int getConnectTimeoutMillis();
}
