package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.cm.ffm.RdmaCmConstants;
import org.verbena.cm.ffm.RdmaCmJoinMcAttrEx;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;

/** The multicast groups that an id has joined, by the contexts it joined them with. Under its channel's lock. */
final class MulticastGroups {
    private static final int ADDRESS_AND_FLAGS =
            RdmaCmConstants.RDMA_CM_JOIN_MC_ATTR_ADDRESS | RdmaCmConstants.RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

    private final Map<Long, InetSocketAddress> groups = new HashMap<>();

    void add(long context, InetSocketAddress group) {
        groups.put(context, group);
    }

    void forget(long context) {
        groups.remove(context);
    }

    void forget(InetSocketAddress group) {
        groups.values().remove(group);
    }

    @Nullable InetSocketAddress of(long context) {
        return groups.get(context);
    }

    /** Calls librdmacm. */
    static int join(
            MemorySegment errno,
            long id,
            Arena arena,
            InetSocketAddress group,
            MulticastMembership membership,
            long context) {
        MemorySegment address = Sockaddr.write(arena, group);
        if (membership == MulticastMembership.FULL) {
            return RdmaCm.joinMulticast(errno, id, address.address(), context);
        }
        MemorySegment attributes = arena.allocate(RdmaCmJoinMcAttrEx.LAYOUT);
        attributes.set(CStruct.U32, RdmaCmJoinMcAttrEx.COMP_MASK, ADDRESS_AND_FLAGS);
        attributes.set(CStruct.U32, RdmaCmJoinMcAttrEx.JOIN_FLAGS, membership.value());
        attributes.set(CStruct.PTR, RdmaCmJoinMcAttrEx.ADDR, address.address());
        return RdmaCm.joinMulticastEx(errno, id, attributes.address(), context);
    }

    /**
     * Leaves the groups that can be left. The kernel does not destroy a queue pair that is attached to a group, and
     * forgets the groups along with the id, whereas librdmacm would keep its memory of them.
     */
    void leaveAll(Arena arena, long id) {
        MemorySegment errno = Errno.newCapture(arena);
        groups.values()
                .removeIf(group -> RdmaCm.leaveMulticast(
                                errno, id, Sockaddr.write(arena, group).address())
                        == 0);
    }

    /** For the message of an exception: what is still joined. */
    @Override
    public String toString() {
        return groups.isEmpty()
                ? ""
                : groups.values().stream().map(Addresses::format).collect(Collectors.joining(", ", ", joined to ", ""));
    }
}
