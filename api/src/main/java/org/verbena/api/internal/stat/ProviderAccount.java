package org.verbena.api.internal.stat;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.transport.BufferPoolMetrics;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.stat.ProviderRow;
import org.verbena.transport.stat.StatFile;

/**
 * Adds up the connections of a provider, those that have ended included. Any thread; used when connections begin and
 * end, never by messages.
 */
public final class ProviderAccount {
    private static final ConcurrentMap<RdmaProvider, ProviderAccount> BY_PROVIDER = new ConcurrentHashMap<>();

    private final RdmaProvider provider;
    private final Set<MemoryDomain> domains = ConcurrentHashMap.newKeySet();
    private final LongAdder plainBegun = new LongAdder();
    private final LongAdder plainEnded = new LongAdder();
    private final LongAdder failedListens = new LongAdder();
    private final LongAdder expiredRequests = new LongAdder();
    private final LongAdder overloadedRequests = new LongAdder();
    private final LongAdder abandonedRequests = new LongAdder();
    private final LongAdder waitingRequests = new LongAdder();

    /** What {@code verbena stat} shows; null if nothing. Written under the lock. */
    private final @Nullable ProviderRow row;

    // Guarded by this.
    private final Set<MessageConnection> open = new HashSet<>();
    private MessageStatistics ended = MessageStatistics.NONE;
    private long begunCount;
    private long lostCount;

    private ProviderAccount(RdmaProvider provider) {
        this.provider = provider;
        StatFile file = StatFile.own();
        row = file == null ? null : file.newProvider(provider.name(), provider.description());
    }

    public static ProviderAccount of(RdmaProvider provider) {
        return BY_PROVIDER.computeIfAbsent(provider, ProviderAccount::new);
    }

    public synchronized void began(MessageConnection connection) {
        open.add(connection);
        begunCount++;
        copy();
    }

    /** Remembers a device that is in use. */
    public void uses(MemoryDomain domain) {
        if (domains.add(domain)) {
            domain.whenLost(() -> domains.remove(domain));
        }
    }

    /** A plain TCP connection was accepted on a port of this provider. */
    public void plainBegan() {
        plainBegun.increment();
        copyPlain();
    }

    /** It has ended. */
    public void plainEnded() {
        plainEnded.increment();
        copyPlain();
    }

    private synchronized void copyPlain() {
        if (row != null) {
            row.plainConnections(plainBegun.sum() - plainEnded.sum(), plainBegun.sum());
        }
    }

    /** A server could not listen. */
    public void listenFailed() {
        failedListens.increment();
    }

    /** A request of the short form was dropped because its time was over. */
    public void requestExpired() {
        expiredRequests.increment();
    }

    /** A request of the short form was refused because its server was overloaded. */
    public void requestOverloaded() {
        overloadedRequests.increment();
    }

    /** A request of the short form was dropped because it was cancelled or its connection was gone. */
    public void requestAbandoned() {
        abandonedRequests.increment();
    }

    /** So many requests more wait for a handler to begin. */
    public void requestsWait(int more) {
        waitingRequests.add(more);
    }

    /** Idempotent. */
    public synchronized void ended(MessageConnection connection, boolean lost) {
        if (open.remove(connection)) {
            ended = ended.plus(connection.statistics());
            lostCount += lost ? 1 : 0;
            copy();
        }
    }

    private void copy() {
        if (row != null) {
            row.connections(open.size(), begunCount, lostCount);
        }
    }

    /** Copies how much memory is registered. A few times a second. */
    synchronized void copyMemory() {
        if (row != null) {
            row.registered(provider.counters().registeredBytes());
            row.waiting(waitingRequests());
        }
    }

    /**
     * The connections at one moment.
     *
     * @param open how many there are
     * @param begun how many there were
     * @param lost how many of these were lost
     * @param messages the figures of all of these
     */
    public record Connections(int open, long begun, long lost, MessageStatistics messages) {}

    /** A snapshot, of which the messages may be slightly younger. */
    public Connections connections() {
        long begun;
        long lost;
        MessageStatistics messages;
        List<MessageConnection> connections;
        synchronized (this) {
            connections = List.copyOf(open);
            begun = begunCount;
            lost = lostCount;
            messages = ended;
        }
        for (MessageConnection connection : connections) { // not under the lock, which loops need
            messages = messages.plus(connection.statistics());
        }
        return new Connections(connections.size(), begun, lost, messages);
    }

    /** How many plain TCP connections there have been, open ones included. */
    public long plainConnections() {
        return plainBegun.sum();
    }

    /** How many plain TCP connections have ended. Read it first, so that the difference is not negative. */
    public long endedPlainConnections() {
        return plainEnded.sum();
    }

    public long failedListens() {
        return failedListens.sum();
    }

    public long expiredRequests() {
        return expiredRequests.sum();
    }

    public long overloadedRequests() {
        return overloadedRequests.sum();
    }

    public long waitingRequests() {
        return waitingRequests.sum();
    }

    public long abandonedRequests() {
        return abandonedRequests.sum();
    }

    /** The pools to send from, of all devices. */
    public BufferPoolMetrics sendBuffers() {
        return ChannelBuffers.sendBuffers(domains);
    }

    /** The pools to receive into, of all devices. */
    public BufferPoolMetrics receiveBuffers() {
        return ChannelBuffers.receiveBuffers(domains);
    }
}
