package org.verbena.api.internal.server;

import org.verbena.transport.spi.RateLimitedLog;

/**
 * What a server's connections share until they are up. Any thread.
 *
 * @param strangers says what peers do that are none: anyone who reaches the port can cause these lines
 * @param handshakes those that are not complete
 */
public record Reception(RateLimitedLog strangers, AcceptedHandshakes handshakes) {}
