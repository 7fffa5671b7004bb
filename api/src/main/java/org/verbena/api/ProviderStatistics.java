package org.verbena.api;

import org.verbena.transport.buffer.BufferPoolMetrics;
import org.verbena.transport.protocol.MessageStatistics;
import org.verbena.transport.spi.ProviderCounters;
import org.verbena.transport.spi.RdmaProvider;

/**
 * What all channels of a provider have done so far in this process, and how it is with them now.
 *
 * @param provider its name
 * @param openConnections connections now, those that are coming up or ending included
 * @param connections connections so far, attempts included
 * @param lostConnections of these, those that did not come up or did not end in good order
 * @param messages the sum over all connections, those that have ended included
 * @param loops what the completion loops have done, and what is registered
 * @param sendBuffers the pools that {@code channel.alloc()} gives from, of all devices
 * @param receiveBuffers the pools that messages are received into, of all devices
 */
public record ProviderStatistics(
        String provider,
        long openConnections,
        long connections,
        long lostConnections,
        MessageStatistics messages,
        ProviderCounters loops,
        BufferPoolMetrics sendBuffers,
        BufferPoolMetrics receiveBuffers) {

    /**
     * Asks.
     *
     * @param provider of {@link RdmaEventLoopGroup#provider()} or {@link org.verbena.transport.ProviderChoice#installed()}
     * @return a snapshot; each number is from a moment ago at the latest
     */
    public static ProviderStatistics of(RdmaProvider provider) {
        return ProviderAccount.of(provider).snapshot();
    }
}
