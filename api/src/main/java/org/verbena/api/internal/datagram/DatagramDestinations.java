package org.verbena.api.internal.datagram;

import io.netty.channel.ChannelPromise;
import io.netty.util.ReferenceCountUtil;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.DatagramEndpoint;

/**
 * Where a channel has sent datagrams: each recipient is looked up once, and writes wait for the outcome. A port is
 * looked up again after a while, in the background, since a peer that has restarted has another queue pair; when there
 * are too many, the least recently used is forgotten. Event loop only.
 *
 * <pre>{@code
 *  (none) --find--> RESOLVING --found--> READY --old, and used--> READY, looked up again
 *     ^                 | failed: the writes that wait fail            | found: the new one; failed: (none)
 *     +-----------------+---------------------------------------------+
 * }</pre>
 *
 * <p>A recipient whose address names a queue pair is known by that, any other by IP address and port.
 */
public final class DatagramDestinations {
    /** For many peers, at some hundred bytes and a kernel object each. */
    static final int MAX = 1024;

    /**
     * Writes of the channel that may wait for look-ups: more than a program has in flight, and a harmless amount of
     * memory.
     */
    static final int MAX_WAITING = 4096;

    /** How long a look-up is valid: a restarted server is found after that. */
    static final long LIFETIME_NANOS = TimeUnit.SECONDS.toNanos(30);

    /** The channel, as far as this needs it. */
    public interface Host {
        DatagramEndpoint endpoint0();

        /** The queue pair that an address names; null for an IP address and port. */
        @Nullable DatagramPeer named0(InetSocketAddress address);

        int timeoutMillis0();

        /** Writes a datagram that has waited, and flushes it if its flush has been requested. */
        void writeReady0(Outgoing outgoing, ChannelPromise promise, boolean isFlushed);

        /** The bytes that wait have changed. */
        void onWaiting0(long bytes);
    }

    /** A recipient. */
    public static final class Entry {
        private final Object key;
        private final InetSocketAddress address;
        private @Nullable DatagramDestination destination;
        private @Nullable DatagramDestination renewal;
        private long foundNanos;
        private int users;
        private final ArrayDeque<Waiting> waiting = new ArrayDeque<>(0);

        Entry(Object key, InetSocketAddress address) {
            this.key = key;
            this.address = address;
        }

        InetSocketAddress address() {
            return address;
        }

        /** A write to it is in Netty's outbound buffer. */
        void use() {
            users++;
        }

        /** The write has left the outbound buffer. */
        void unuse() {
            users--;
        }

        /** The destination to send to; null if it is not known, or no longer. */
        public @Nullable DatagramDestination ready() {
            DatagramDestination known = destination;
            return known != null && known.isReady() ? known : null;
        }
    }

    private record Waiting(Outgoing outgoing, ChannelPromise promise, long number) {}

    private final Host host;
    private final LongSupplier nanoClock;
    private final Map<Object, Entry> entries = new LinkedHashMap<>(16, 0.75f, true);
    private final Map<DatagramDestination, Entry> lookUps = new HashMap<>();

    /** The ports of queue pairs that were looked up, for datagrams that they send. */
    private final Map<DatagramPeer, Integer> ports = new HashMap<>();

    /** The last recipient, by identity: most programs send to the same one again. */
    private @Nullable InetSocketAddress lastAddress;

    private @Nullable Entry last;
    private long writes;
    private long flushed;
    private int waitingWrites;
    private long waitingBytes;

    public DatagramDestinations(Host host, LongSupplier nanoClock) {
        this.host = host;
        this.nanoClock = nanoClock;
    }

    private Object keyOf(InetSocketAddress address) {
        DatagramPeer named = host.named0(address);
        return named == null ? address : named;
    }

    /**
     * The entry of a recipient; starts to look it up if it is new.
     *
     * @throws ConnectionException too many are being looked up
     */
    @SuppressWarnings("ReferenceEquality") // this very object: equals is the map's business
    public Entry find(InetSocketAddress address) {
        Entry recent = last;
        if (recent == null || address != lastAddress) {
            Object key = keyOf(address);
            recent = entries.get(key);
            if (recent == null) {
                makeRoom();
                recent = new Entry(key, address);
                entries.put(key, recent);
            }
            last = recent;
            lastAddress = address;
        }
        if (recent.destination == null) {
            DatagramDestination started = start(address);
            recent.destination = started;
            lookUps.put(started, recent);
        } else if (recent.key instanceof InetSocketAddress
                && !address.getAddress().isMulticastAddress()
                && recent.renewal == null
                && recent.ready() != null
                && nanoClock.getAsLong() - recent.foundNanos > LIFETIME_NANOS) {
            DatagramDestination started = start(address);
            recent.renewal = started;
            lookUps.put(started, recent);
        }
        return recent;
    }

    /** Looks up where to send to. */
    DatagramDestination start(InetSocketAddress address) {
        DatagramPeer named = host.named0(address);
        return named == null
                ? host.endpoint0().resolve(address, host.timeoutMillis0())
                : host.endpoint0().resolve(named);
    }

    private void makeRoom() {
        if (entries.size() < MAX) {
            return;
        }
        for (Iterator<Entry> eldest = entries.values().iterator(); eldest.hasNext(); ) {
            Entry entry = eldest.next();
            if (entry.users == 0 && entry.waiting.isEmpty()) {
                eldest.remove();
                close(entry);
                return;
            }
        }
        throw new ConnectionException("datagrams to " + MAX
                + " recipients wait already, which is the limit of a channel: write fewer at a time");
    }

    /**
     * Makes a write wait for its look-up. Takes the caller's reference.
     *
     * @throws ConnectionException too many wait; nothing is taken
     */
    public void await(Entry entry, Outgoing outgoing, ChannelPromise promise) {
        if (waitingWrites >= MAX_WAITING) {
            throw new ConnectionException(MAX_WAITING
                    + " datagrams wait for their recipients to be looked up, which is the limit of a channel: wait for"
                    + " the first write to a recipient before others");
        }
        entry.waiting.add(new Waiting(outgoing, promise, writes++));
        waitingWrites++;
        waitingBytes += outgoing.lengthBytes();
        host.onWaiting0(waitingBytes);
    }

    /** Flushes the waiting writes as soon as they can be sent. */
    public void flush() {
        flushed = writes;
    }

    /** A look-up has completed. Returns false if it belongs to none of these. */
    public boolean onResolved(DatagramDestination destination, @Nullable Throwable cause) {
        Entry entry = lookUps.remove(destination);
        if (entry == null) {
            return false;
        }
        if (destination.equals(entry.renewal)) {
            entry.renewal = null;
            if (cause == null) {
                forgetSender(entry);
                Objects.requireNonNull(entry.destination).close();
                found(entry, destination);
            } else {
                forget(entry);
            }
            return true;
        }
        if (cause != null) {
            forget(entry);
            failWaiting(entry, cause);
            return true;
        }
        found(entry, destination);
        Waiting write;
        while ((write = entry.waiting.poll()) != null) {
            left(write);
            host.writeReady0(write.outgoing, write.promise, write.number < flushed);
        }
        return true;
    }

    private void found(Entry entry, DatagramDestination destination) {
        entry.destination = destination;
        entry.foundNanos = nanoClock.getAsLong();
        DatagramPeer peer = destination.peer();
        if (peer != null
                && entry.key instanceof InetSocketAddress
                && peer.queuePairNumber() != DatagramPeer.MULTICAST) {
            ports.put(sourceOf(peer), entry.address.getPort());
        }
    }

    /** Adds a destination that was looked up for a connect. */
    public void adopt(InetSocketAddress address, DatagramDestination destination) {
        Object key = keyOf(address);
        if (entries.containsKey(key) || entries.size() >= MAX) {
            destination.close(); // the existing one is used, or looked up again when there is room
            return;
        }
        Entry entry = new Entry(key, address);
        entries.put(key, entry);
        found(entry, destination);
    }

    /** The queue pair behind a recipient, as far as it is known. */
    public @Nullable DatagramPeer peerOf(InetSocketAddress address) {
        Entry entry = entries.get(keyOf(address));
        DatagramDestination known = entry == null ? null : entry.ready();
        return known == null ? null : known.peer();
    }

    /** A group that this channel sends to is lost. */
    public void onLost(DatagramDestination destination) {
        for (Entry entry : new ArrayList<>(entries.values())) {
            if (destination.equals(entry.destination)) {
                forget(entry);
            }
        }
    }

    /** The form that a peer has as the sender of a datagram. */
    public static DatagramPeer sourceOf(DatagramPeer peer) {
        return new DatagramPeer(peer.gidHigh(), peer.gidLow(), peer.queuePairNumber(), peer.lid(), 0);
    }

    /** The port at which a sender was looked up; 0 if it was not. */
    public int portOf(DatagramPeer sender) {
        return ports.isEmpty() ? 0 : ports.getOrDefault(sourceOf(sender), 0);
    }

    /** Forgets a recipient's look-up. */
    public void forget(InetSocketAddress address) {
        Entry entry = entries.get(keyOf(address));
        if (entry != null && entry.waiting.isEmpty()) {
            forget(entry);
        }
    }

    private void forget(Entry entry) {
        entries.remove(entry.key);
        close(entry);
    }

    private void close(Entry entry) {
        if (entry.equals(last)) {
            last = null;
            lastAddress = null;
        }
        forgetSender(entry);
        close(entry.destination);
        close(entry.renewal);
        entry.destination = null;
        entry.renewal = null;
    }

    private void forgetSender(Entry entry) {
        DatagramDestination known = entry.destination;
        DatagramPeer peer = known == null ? null : known.peer();
        if (peer != null) {
            ports.remove(sourceOf(peer));
        }
    }

    private void close(@Nullable DatagramDestination destination) {
        if (destination != null) {
            lookUps.remove(destination);
            destination.close();
        }
    }

    private void failWaiting(Entry entry, Throwable cause) {
        Waiting write;
        while ((write = entry.waiting.poll()) != null) {
            left(write);
            ReferenceCountUtil.release(write.outgoing);
            write.promise.tryFailure(cause);
        }
    }

    private void left(Waiting write) {
        waitingWrites--;
        waitingBytes -= write.outgoing.lengthBytes();
        host.onWaiting0(waitingBytes);
    }

    /** Fails waiting writes, since the channel closes. Writes that the device has still complete. */
    public void close(Throwable cause) {
        for (Entry entry : new ArrayList<>(entries.values())) {
            entries.remove(entry.key);
            failWaiting(entry, cause);
            close(entry);
        }
    }
}
