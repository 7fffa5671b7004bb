package org.verbena.transport.verbs;

import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.Cm;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.QueuePairRoute;
import org.verbena.verbs.Context;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.device.TransportType;

/**
 * The local port of a queue pair that is connected by hand.
 *
 * @param context of the device: librdmacm's, which all of this process's connections on the device share
 * @param port from 1
 * @param gidIndex the index of the source GID, -1 for routes by LID
 * @param gid the GID, zero without one
 * @param lid 0 on Ethernet
 * @param isEthernet whether it is RoCE
 * @param mtu the longest packets that it takes
 */
record LocalPort(Context context, int port, int gidIndex, Gid gid, int lid, boolean isEthernet, Mtu mtu) {

    /**
     * Finds the device of a route, without asking it anything.
     *
     * @param route what the program wants
     * @throws ConnectionException there is no such device
     */
    static Context deviceOf(QueuePairRoute route) {
        InetAddress address = route.address();
        return address == null
                ? named(Objects.requireNonNull(route.device()))
                : withBound(route, address, (device, port) -> device);
    }

    /**
     * Finds the port of a route. Blocks until the device answers.
     *
     * @param device of the route
     * @param route what the program wants
     * @throws ConnectionException there is no such port or GID, it is down, or it is iWARP
     */
    static LocalPort of(Context device, QueuePairRoute route) {
        InetAddress address = route.address();
        int port = address == null ? route.port() : withBound(route, address, (bound, its) -> its);
        return of(device, port, route);
    }

    private static <T> T withBound(QueuePairRoute route, InetAddress address, BiFunction<Context, Integer, T> use) {
        try (EventChannel channel = EventChannel.open();
                CmId id = CmId.create(channel, PortSpace.TCP)) {
            id.bind(new InetSocketAddress(address, 0));
            Context bound = id.device();
            if (bound == null) {
                throw new ConnectionException.Unreachable("no RDMA device has the address " + route
                        + ": `rdma link` lists devices and their network interfaces");
            }
            return use.apply(bound, id.portNumber());
        }
    }

    private static Context named(String name) {
        List<Context> devices = Cm.devices();
        for (Context context : devices) {
            if (context.device().name().equals(name)) {
                return context;
            }
        }
        throw new ConnectionException.Unreachable("there is no RDMA device " + name + "; there are "
                + devices.stream().map(context -> context.device().name()).toList());
    }

    private static LocalPort of(Context context, int port, QueuePairRoute route) {
        String name = context.device().name();
        if (context.device().transportType() == TransportType.IWARP) {
            throw new ConnectionException(name + " is iWARP, whose queue pairs live on a TCP connection that its driver"
                    + " makes: they cannot be connected by hand. Connect to an address, which uses rdma_cm");
        }
        int ports = context.queryDevice().ports();
        if (port > ports) {
            throw new ConnectionException.Unreachable(name + " has " + ports + " ports, and no port " + port);
        }
        PortAttributes attributes = context.queryPort(port);
        if (attributes.state() != PortState.ACTIVE) {
            throw new ConnectionException.Unreachable("port " + port + " of " + name + " is " + attributes.state());
        }
        Mtu active = attributes.activeMtu();
        int maxBytes = active.bytes();
        if (route.mtuBytes() > maxBytes) {
            throw new ConnectionException("packets of " + route.mtuBytes() + " bytes are over the active MTU of port "
                    + port + " of " + name + ", which is " + maxBytes);
        }
        boolean isEthernet = attributes.linkLayer() == LinkLayer.ETHERNET;
        GidEntry source = source(context, port, route, isEthernet);
        if (source == null && isEthernet) {
            throw new ConnectionException.Unreachable("port " + port + " of " + name + " has no GID for "
                    + (route.address() == null ? "RoCE v2" : route) + ": `verbena devices` lists those that it has");
        }
        return new LocalPort(
                context,
                port,
                source == null ? QueuePairRoute.ANY_GID : source.index(),
                source == null ? Gid.ZERO : source.gid(),
                attributes.lid(),
                isEthernet,
                route.mtuBytes() == QueuePairRoute.ACTIVE_MTU ? active : Mtu.ofBytes(route.mtuBytes()));
    }

    private static @Nullable GidEntry source(Context context, int port, QueuePairRoute route, boolean isEthernet) {
        if (route.gidIndex() != QueuePairRoute.ANY_GID) {
            return context.queryGid(port, route.gidIndex());
        }
        if (!isEthernet) {
            return null;
        }
        GidEntry best = null;
        for (GidEntry entry : context.queryGids()) {
            if (entry.port() == port && rank(entry, route) > (best == null ? 0 : rank(best, route))) {
                best = entry;
            }
        }
        return best;
    }

    /** How well a GID suits a route; 0 if it does not. */
    private static int rank(GidEntry entry, QueuePairRoute route) {
        InetAddress wanted = route.address();
        InetAddress its = entry.gid().toInetAddress();
        if (entry.gid().isZero() || (wanted != null && !its.equals(wanted))) {
            return 0;
        }
        if (entry.type() != GidType.ROCE_V2) {
            return wanted == null ? 0 : 1;
        }
        int version = its instanceof Inet4Address ? 3 : 2;
        return wanted != null || entry.networkInterfaceIndex() == 0
                ? version
                : version * ownership(entry.networkInterfaceIndex(), its);
    }

    /**
     * How sure it is that an interface is in this network namespace: 0 if it is not, 2 if it has the address. With
     * containers that share a device, and VLANs, the table has GIDs of others.
     */
    static int ownership(int networkInterfaceIndex, InetAddress address) {
        try {
            NetworkInterface its = NetworkInterface.getByIndex(networkInterfaceIndex);
            return its == null ? 0 : Collections.list(its.getInetAddresses()).contains(address) ? 2 : 1;
        } catch (SocketException unknown) {
            return 1;
        }
    }
}
