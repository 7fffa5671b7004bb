package org.verbena.doctor;

/**
 * A host to which the path is examined.
 *
 * @param host a name or an address
 * @param port where it listens; 0 for no connection
 * @param provider the provider's name, or {@code auto}
 * @param echoes whether it sends back each request, as {@code verbena echo-server} does
 */
record Peer(String host, int port, String provider, boolean echoes) {}
