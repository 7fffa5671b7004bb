package org.verbena.transport;

import java.net.InetAddress;
import org.jspecify.annotations.Nullable;

/**
 * The local end of a connection made by hand: a device by its name, or the device that serves a local address.
 *
 * @param device the device's name, as {@code ibv_devices} lists it; null to find it by the address
 * @param port of the device, from 1
 * @param gidIndex the index of the source GID; {@link #ANY_GID} for the best one: on Ethernet the first of RoCE v2 with
 *     an IPv4 address or, failing that, any of RoCE v2, and none on InfiniBand, where routes go by LID
 * @param address of this machine; null if the device is named
 * @param mtuBytes the longest payload of a packet, 256 to 4096; {@link #ACTIVE_MTU} for the port's active MTU. The
 *     connection uses the peer's if that is smaller
 * @param pkeyIndex the partition, as an index of the port's table of P_Keys, 0 to 65535; 0 on Ethernet
 * @param serviceLevel the service level of InfiniBand, which switches map to a virtual lane, 0 to 15; 0 on Ethernet
 */
public record QueuePairRoute(
        @Nullable String device,
        int port,
        int gidIndex,
        @Nullable InetAddress address,
        int mtuBytes,
        int pkeyIndex,
        int serviceLevel) {
    /** Leaves the choice of the GID to the provider. */
    public static final int ANY_GID = -1;

    /** Uses the port's active MTU. */
    public static final int ACTIVE_MTU = 0;

    /** Checks ranges. */
    public QueuePairRoute {
        if ((device == null) == (address == null)) {
            throw new IllegalArgumentException(
                    "either a device or a local address, not both: " + device + ", " + address);
        }
        if (port < 1 || port > 255) {
            throw new IllegalArgumentException("port " + port + " of a device is not within 1 to 255");
        }
        if (gidIndex < ANY_GID || gidIndex > 255) {
            throw new IllegalArgumentException("GID index " + gidIndex + " is not within 0 to 255");
        }
        if (mtuBytes != ACTIVE_MTU && !QueuePairEnd.isMtu(mtuBytes)) {
            throw new IllegalArgumentException("mtuBytes " + mtuBytes + " is not 256, 512, 1024, 2048 or 4096");
        }
        if (pkeyIndex < 0 || pkeyIndex > 0xffff) {
            throw new IllegalArgumentException("P_Key index " + pkeyIndex + " is not within 0 to 65535");
        }
        if (serviceLevel < 0 || serviceLevel > 15) {
            throw new IllegalArgumentException("service level " + serviceLevel + " is not within 0 to 15");
        }
    }

    /**
     * A device by its name, its first port and its best GID.
     *
     * @param name as {@code ibv_devices} lists it
     * @return the route
     */
    public static QueuePairRoute ofDevice(String name) {
        return ofDevice(name, 1, ANY_GID);
    }

    /**
     * A device by its name.
     *
     * @param name as {@code ibv_devices} lists it
     * @param port from 1
     * @param gidIndex the index of the source GID, or {@link #ANY_GID}
     * @return the route
     */
    public static QueuePairRoute ofDevice(String name, int port, int gidIndex) {
        return new QueuePairRoute(name, port, gidIndex, null, ACTIVE_MTU, 0, 0);
    }

    /**
     * The device that serves an address of this machine.
     *
     * @param local the address
     * @return the route, from the GID of that address
     */
    public static QueuePairRoute ofAddress(InetAddress local) {
        return new QueuePairRoute(null, 1, ANY_GID, local, ACTIVE_MTU, 0, 0);
    }

    /**
     * The same route with another packet size.
     *
     * @param bytes the longest payload, 256 to 4096
     * @return a copy
     */
    public QueuePairRoute withMtuBytes(int bytes) {
        return new QueuePairRoute(device, port, gidIndex, address, bytes, pkeyIndex, serviceLevel);
    }

    /**
     * The same route in another partition.
     *
     * @param index of the port's table of P_Keys, from 0
     * @return a copy
     */
    public QueuePairRoute withPkeyIndex(int index) {
        return new QueuePairRoute(device, port, gidIndex, address, mtuBytes, index, serviceLevel);
    }

    /**
     * The same route with another service level.
     *
     * @param level 0 to 15
     * @return a copy
     */
    public QueuePairRoute withServiceLevel(int level) {
        return new QueuePairRoute(device, port, gidIndex, address, mtuBytes, pkeyIndex, level);
    }

    /** For messages: the device with its port, or the address. */
    @Override
    public String toString() {
        InetAddress local = address;
        return local != null
                ? local.getHostAddress()
                : device + " port " + port + (gidIndex == ANY_GID ? "" : " GID " + gidIndex);
    }
}
