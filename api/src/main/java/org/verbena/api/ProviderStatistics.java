package org.verbena.api;

import org.verbena.api.internal.stat.ProviderAccount;
import org.verbena.transport.BufferPoolMetrics;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.spi.ProviderCounters;
import org.verbena.transport.spi.RdmaProvider;

/**
 * The counters and current figures of all channels of a provider in this process.
 *
 * @param provider its name
 * @param openConnections connections now, including those that are being set up or closed
 * @param connections connections so far, including attempts
 * @param lostConnections how many of these could not be set up, or were lost
 * @param openPlainConnections plain TCP connections now, of servers that take them ({@link
 *     RdmaChannelOption#PLAIN_TCP}); they are not among the connections above
 * @param plainConnections plain TCP connections so far
 * @param failedListens how often a server could not listen with this provider, whether or not it listened with another
 * @param messages the sum over all connections, those that have ended included
 * @param expiredRequests requests of the short form that were dropped before their handler, because their client no
 *     longer waited for the reply
 * @param overloadedRequests requests of the short form that servers refused before their handler, because they were
 *     overloaded
 * @param abandonedRequests requests of the short form that were dropped before their handler, because their client
 *     had cancelled them or their connection was gone
 * @param waitingRequests requests of the short form that wait now for a handler, because of {@link
 *     RdmaServer.Builder#maxHandlers}
 * @param loops the completion loops, and how much memory is registered
 * @param sendBuffers the pools that {@code channel.alloc()} allocates from, of all devices
 * @param receiveBuffers the pools that messages are received into, of all devices
 */
public record ProviderStatistics(
        String provider,
        long openConnections,
        long connections,
        long lostConnections,
        long openPlainConnections,
        long plainConnections,
        long failedListens,
        MessageStatistics messages,
        long expiredRequests,
        long overloadedRequests,
        long abandonedRequests,
        long waitingRequests,
        ProviderCounters loops,
        BufferPoolMetrics sendBuffers,
        BufferPoolMetrics receiveBuffers) {

    /**
     * Takes a snapshot.
     *
     * @param provider of {@link RdmaEventLoopGroup#provider()} or {@link
     *     org.verbena.transport.provider.ProviderChoice#installed()}
     * @return the snapshot, weakly consistent: values may lag slightly, and not all by the same amount
     */
    public static ProviderStatistics of(RdmaProvider provider) {
        ProviderAccount account = ProviderAccount.of(provider);
        ProviderAccount.Connections rdma = account.connections();
        long plainEnded = account.endedPlainConnections(); // first, or more could have ended than begun
        long plain = account.plainConnections();
        return new ProviderStatistics(
                provider.name(),
                rdma.open(),
                rdma.begun(),
                rdma.lost(),
                plain - plainEnded,
                plain,
                account.failedListens(),
                rdma.messages(),
                account.expiredRequests(),
                account.overloadedRequests(),
                account.abandonedRequests(),
                account.waitingRequests(),
                provider.counters(),
                account.sendBuffers(),
                account.receiveBuffers());
    }
}
