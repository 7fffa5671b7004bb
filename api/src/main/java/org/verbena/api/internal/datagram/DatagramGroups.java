package org.verbena.api.internal.datagram;

import io.netty.channel.ChannelPromise;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.DatagramEndpoint;

/**
 * The multicast groups of a channel, with the sources that each accepts or excludes. RDMA has no filters of sources:
 * the channel drops the other datagrams. Event loop only.
 */
public final class DatagramGroups {
    /** A port can belong to few groups, and each is a kernel object. */
    static final int MAX = 256;

    private static final class Group {
        private final DatagramDestination destination;

        /** Null once they have been completed. */
        private @Nullable List<ChannelPromise> joining = new ArrayList<>();

        /** All, if empty. */
        private final Set<InetAddress> wanted = new HashSet<>();

        private final Set<InetAddress> blocked = new HashSet<>();

        Group(DatagramDestination destination) {
            this.destination = destination;
        }

        boolean hasFilter() {
            return !wanted.isEmpty() || !blocked.isEmpty();
        }

        boolean accepts(InetAddress source) {
            return !blocked.contains(source) && (wanted.isEmpty() || wanted.contains(source));
        }
    }

    private final Map<InetAddress, Group> groups = new HashMap<>();
    private int filters;

    /** Refuses an address that is none of a group. */
    public static void requireMulticast(InetAddress group) {
        if (!group.isMulticastAddress()) {
            throw new IllegalArgumentException(group + " is not a multicast address");
        }
    }

    /**
     * Refuses another interface than the device's.
     *
     * @param group to join or leave
     * @param asked the interface; null for the one that the channel is bound to
     * @param bound the channel's address
     */
    public static void requireInterface(InetAddress group, @Nullable NetworkInterface asked, InetAddress bound)
            throws SocketException {
        if (asked != null && !asked.equals(NetworkInterface.getByInetAddress(bound))) {
            throw new UnsupportedOperationException("the group " + group.getHostAddress() + " cannot be joined on "
                    + asked.getName() + ": a queue pair belongs to one device, and this one is at "
                    + bound.getHostAddress() + "; bind a channel to the other one");
        }
    }

    /** Joins; the promise has the outcome. */
    public void join(
            DatagramEndpoint endpoint,
            InetAddress address,
            @Nullable InetAddress source,
            int timeoutMillis,
            ChannelPromise promise) {
        Group group = groups.get(address);
        if (group == null) {
            if (groups.size() >= MAX) {
                promise.tryFailure(new IllegalStateException(
                        "the channel has joined " + MAX + " groups, which is its limit: leave some"));
                return;
            }
            try {
                group = new Group(endpoint.join(new InetSocketAddress(address, 0), timeoutMillis));
            } catch (RuntimeException refused) {
                promise.tryFailure(refused);
                return;
            }
            groups.put(address, group);
        } else if (source == null && group.wanted.isEmpty()) {
            report(group, promise);
            return;
        } else if (source == null || group.wanted.isEmpty()) {
            promise.tryFailure(new IllegalStateException("the group " + address.getHostAddress() + " was joined for "
                    + (source == null ? "some" : "all") + " sources: leave it first"));
            return;
        }
        if (source != null) {
            group.wanted.add(source);
        }
        countFilters();
        report(group, promise);
    }

    private static void report(Group group, ChannelPromise promise) {
        List<ChannelPromise> joining = group.joining;
        if (joining == null) {
            promise.trySuccess();
        } else {
            joining.add(promise);
        }
    }

    /** Leaves; the promise has the outcome. */
    public void leave(InetAddress address, @Nullable InetAddress source, ChannelPromise promise) {
        Group group = groups.get(address);
        if (group == null || (source != null && !group.wanted.contains(source))) {
            promise.tryFailure(notJoined(address, source));
            return;
        }
        if (source != null && group.wanted.size() > 1) {
            group.wanted.remove(source);
        } else {
            end(
                    address,
                    group,
                    new ConnectionException(
                            "the group " + address.getHostAddress() + " was left before it was joined"));
        }
        countFilters();
        promise.trySuccess();
    }

    /** Drops datagrams of a source to a group. */
    public void block(InetAddress address, InetAddress source, ChannelPromise promise) {
        Group group = groups.get(address);
        if (group == null) {
            promise.tryFailure(notJoined(address, null));
        } else if (!group.wanted.isEmpty()) {
            promise.tryFailure(new IllegalStateException("the group " + address.getHostAddress()
                    + " was joined for some sources: leave " + source.getHostAddress() + " instead"));
        } else {
            group.blocked.add(source);
            countFilters();
            promise.trySuccess();
        }
    }

    private static IllegalStateException notJoined(InetAddress address, @Nullable InetAddress source) {
        return new IllegalStateException("the group " + address.getHostAddress()
                + (source == null ? "" : " of source " + source.getHostAddress()) + " was not joined");
    }

    private void end(InetAddress address, Group group, Throwable cause) {
        groups.remove(address);
        group.destination.close();
        fail(group, cause);
    }

    private static void fail(Group group, Throwable cause) {
        List<ChannelPromise> joining = group.joining;
        group.joining = null;
        if (joining != null) {
            joining.forEach(promise -> promise.tryFailure(cause));
        }
    }

    /** A group was joined, failed to join, or was lost. Returns false if the destination is none of these groups. */
    public boolean onOutcome(DatagramDestination destination, @Nullable Throwable cause) {
        InetAddress address = addressOf(destination);
        Group group = address == null ? null : groups.get(address);
        if (group == null) {
            return false;
        }
        if (cause == null) {
            List<ChannelPromise> joining = group.joining;
            group.joining = null;
            if (joining != null) {
                joining.forEach(ChannelPromise::trySuccess);
            }
        } else {
            groups.remove(address);
            countFilters();
            fail(group, cause);
        }
        return true;
    }

    private @Nullable InetAddress addressOf(DatagramDestination destination) {
        for (Map.Entry<InetAddress, Group> entry : groups.entrySet()) {
            if (entry.getValue().destination.equals(destination)) {
                return entry.getKey();
            }
        }
        return null;
    }

    private void countFilters() {
        filters = 0;
        for (Group group : groups.values()) {
            filters += group.hasFilter() ? 1 : 0;
        }
    }

    /** Whether a datagram of a sender to an address is accepted. */
    public boolean accepts(DatagramPeer sender, long destinationHigh, long destinationLow) {
        if (filters == 0) {
            return true;
        }
        Group group = groups.get(new DatagramPeer(destinationHigh, destinationLow, 0, 0, 0).address());
        return group == null || group.accepts(sender.address());
    }

    /** Leaves all. */
    public void close(Throwable cause) {
        for (Map.Entry<InetAddress, Group> entry : new ArrayList<>(groups.entrySet())) {
            end(entry.getKey(), entry.getValue(), cause);
        }
    }
}
