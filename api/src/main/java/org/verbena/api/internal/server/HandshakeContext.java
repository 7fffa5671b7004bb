package org.verbena.api.internal.server;

import org.verbena.transport.spi.RateLimitedLog;

/**
 * What a server's connections share until they are active. Any thread.
 *
 * @param strangers log of what unauthenticated peers cause: limited, since anyone who reaches the port can cause these
 *     lines
 * @param handshakes those that are not complete
 */
public record HandshakeContext(RateLimitedLog strangers, AcceptedHandshakes handshakes) {}
