package org.verbena.doctor;

/**
 * A host to examine the way to.
 *
 * @param host a name or an address
 * @param port where it listens, 0 if nothing is to be connected
 * @param provider the provider's name, or {@code auto}
 * @param echoes whether it sends back each request, as {@code verbena echo-server} does
 */
record Peer(String host, int port, String provider, boolean echoes) {}
