package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.RdmaAddrinfo;
import org.verbena.cm.ffm.RdmaCmConstants;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.queue.QueuePairType;

/**
 * One way to reach or to offer a service, as returned by {@link Cm#addressInfo}.
 *
 * @param flags the requested flags
 * @param queuePairType the type of queue pair to connect
 * @param portSpace connections or datagrams
 * @param source the local address; null if not determined or not an IP address
 * @param destination the peer's address; null when passive or not an IP address
 * @param sourceName the local host's canonical name, if it was looked up
 * @param destinationName the peer's canonical name, if it was looked up
 * @param route path records of InfiniBand, if a service knew them; opaque
 * @param connect connection data that goes before the private data; opaque <p>Source: rdma_getaddrinfo(3)
 */
public record AddressInfo(
        Set<Flag> flags,
        QueuePairType queuePairType,
        PortSpace portSpace,
        @Nullable InetSocketAddress source,
        @Nullable InetSocketAddress destination,
        @Nullable String sourceName,
        @Nullable String destinationName,
        byte[] route,
        byte[] connect) {

    /** Flags of a look-up. */
    public enum Flag {
        /** To listen. */
        PASSIVE(RdmaCmConstants.RAI_PASSIVE),

        /** The node is a numeric address: do not ask a name service. */
        NUMERIC_HOST(RdmaCmConstants.RAI_NUMERICHOST),

        /** Do not look for routes. */
        NO_ROUTE(RdmaCmConstants.RAI_NOROUTE),

        /** Only addresses of the given family. */
        FAMILY(RdmaCmConstants.RAI_FAMILY);

        private final int value;

        Flag(int value) {
            this.value = value;
        }

        /**
         * The C value.
         *
         * @return {@code RAI_...}
         */
        public int value() {
            return value;
        }
    }

    /** Address families. */
    public enum Family {
        /** Any. */
        ANY(Sockaddr.AF_UNSPEC),

        /** IPv4. */
        IPV4(Sockaddr.AF_INET),

        /** IPv6. */
        IPV6(Sockaddr.AF_INET6),

        /** InfiniBand GIDs. */
        IB(Sockaddr.AF_IB);

        private final int value;

        Family(int value) {
            this.value = value;
        }

        /**
         * The C value.
         *
         * @return {@code AF_...}
         */
        public int value() {
            return value;
        }
    }

    /**
     * The kind of address wanted.
     *
     * @param flags what for; {@link Flag#FAMILY} is added for a family other than any
     * @param family of the addresses
     * @param queuePairType to connect with; null for the port space's default
     * @param portSpace connections or datagrams
     * @param source to come from; null for any
     */
    public record Hints(
            Set<Flag> flags,
            Family family,
            @Nullable QueuePairType queuePairType,
            PortSpace portSpace,
            @Nullable InetSocketAddress source) {
        /** Copies the flags. */
        public Hints {
            flags = Set.copyOf(flags);
        }

        /**
         * To connect.
         *
         * @param portSpace connections or datagrams
         * @return hints
         */
        public static Hints active(PortSpace portSpace) {
            return new Hints(Set.of(), Family.ANY, null, portSpace, null);
        }

        /**
         * To listen.
         *
         * @param portSpace connections or datagrams
         * @return hints
         */
        public static Hints passive(PortSpace portSpace) {
            return new Hints(Set.of(Flag.PASSIVE), Family.ANY, null, portSpace, null);
        }

        MemorySegment write(Arena arena) {
            MemorySegment hints = arena.allocate(RdmaAddrinfo.LAYOUT);
            int bits = family == Family.ANY ? 0 : Flag.FAMILY.value;
            for (Flag flag : flags) {
                bits |= flag.value;
            }
            hints.set(CStruct.I32, RdmaAddrinfo.AI_FLAGS, bits);
            hints.set(CStruct.I32, RdmaAddrinfo.AI_FAMILY, family.value);
            QueuePairType type = queuePairType != null
                    ? queuePairType
                    : portSpace.isDatagram() ? QueuePairType.UD : QueuePairType.RC;
            hints.set(CStruct.I32, RdmaAddrinfo.AI_QP_TYPE, type.value());
            hints.set(CStruct.I32, RdmaAddrinfo.AI_PORT_SPACE, portSpace.value());
            if (source != null) {
                MemorySegment sockaddr = Sockaddr.write(arena, source);
                hints.set(CStruct.PTR, RdmaAddrinfo.AI_SRC_ADDR, sockaddr.address());
                hints.set(CStruct.U32, RdmaAddrinfo.AI_SRC_LEN, (int) sockaddr.byteSize());
            }
            return hints;
        }
    }

    /** Copies what could change. */
    public AddressInfo {
        flags = Set.copyOf(flags);
        route = route.clone();
        connect = connect.clone();
    }

    static AddressInfo copy(MemorySegment info) {
        int bits = info.get(CStruct.I32, RdmaAddrinfo.AI_FLAGS);
        EnumSet<Flag> flags = EnumSet.noneOf(Flag.class);
        for (Flag flag : Flag.values()) {
            if ((bits & flag.value) != 0) {
                flags.add(flag);
            }
        }
        PortSpace space = PortSpace.of(info.get(CStruct.I32, RdmaAddrinfo.AI_PORT_SPACE));
        return new AddressInfo(
                flags,
                QueuePairType.of(info.get(CStruct.I32, RdmaAddrinfo.AI_QP_TYPE)),
                space == null ? PortSpace.IB : space,
                address(info, RdmaAddrinfo.AI_SRC_ADDR, RdmaAddrinfo.AI_SRC_LEN),
                address(info, RdmaAddrinfo.AI_DST_ADDR, RdmaAddrinfo.AI_DST_LEN),
                name(info, RdmaAddrinfo.AI_SRC_CANONNAME),
                name(info, RdmaAddrinfo.AI_DST_CANONNAME),
                bytes(info, RdmaAddrinfo.AI_ROUTE, RdmaAddrinfo.AI_ROUTE_LEN),
                bytes(info, RdmaAddrinfo.AI_CONNECT, RdmaAddrinfo.AI_CONNECT_LEN));
    }

    private static @Nullable InetSocketAddress address(MemorySegment info, long pointerAt, long lengthAt) {
        long sockaddr = info.get(CStruct.PTR, pointerAt);
        int lengthBytes = info.get(CStruct.U32, lengthAt);
        return sockaddr == 0 || lengthBytes == 0 ? null : Sockaddr.read(Pointers.view(sockaddr, lengthBytes));
    }

    private static @Nullable String name(MemorySegment info, long pointerAt) {
        long name = info.get(CStruct.PTR, pointerAt);
        return name == 0 ? null : Pointers.readString(name);
    }

    private static byte[] bytes(MemorySegment info, long pointerAt, long lengthAt) {
        return Pointers.copy(info.get(CStruct.PTR, pointerAt), info.get(CStruct.SIZE, lengthAt));
    }

    /**
     * Routing data for the device, as rdma_getaddrinfo(3) found it.
     *
     * @return a copy; empty if there is none
     */
    @Override
    public byte[] route() {
        return route.clone();
    }

    /**
     * Connection data for the device, as rdma_getaddrinfo(3) found it.
     *
     * @return a copy; empty if there is none
     */
    @Override
    public byte[] connect() {
        return connect.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof AddressInfo that
                && flags.equals(that.flags)
                && queuePairType == that.queuePairType
                && portSpace == that.portSpace
                && java.util.Objects.equals(source, that.source)
                && java.util.Objects.equals(destination, that.destination)
                && java.util.Objects.equals(sourceName, that.sourceName)
                && java.util.Objects.equals(destinationName, that.destinationName)
                && Arrays.equals(route, that.route)
                && Arrays.equals(connect, that.connect);
    }

    @Override
    public int hashCode() {
        return java.util.Objects.hash(
                flags, queuePairType, portSpace, source, destination, Arrays.hashCode(route), Arrays.hashCode(connect));
    }
}
