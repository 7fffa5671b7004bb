package org.verbena.transport.stat;

/**
 * A provider of a process.
 *
 * @param name of the provider
 * @param description of its devices
 * @param registeredBytes memory registered with it, up to a second ago
 * @param openConnections connections now
 * @param connections connections so far
 * @param lostConnections how many of these did not come up, or were lost
 * @param openPlainConnections plain TCP connections on its ports now
 * @param plainConnections plain TCP connections so far
 * @param waitingRequests requests that have arrived and wait for a handler to begin, because of {@code maxHandlers}
 */
public record ProviderReading(
        String name,
        String description,
        long registeredBytes,
        long openConnections,
        long connections,
        long lostConnections,
        long openPlainConnections,
        long plainConnections,
        long waitingRequests) {}
