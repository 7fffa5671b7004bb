package org.verbena.cm.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct rdma_cm_join_mc_attr_ex}. Source: rdma_join_multicast_ex(3) */
public final class RdmaCmJoinMcAttrEx {
    public static final StructLayout LAYOUT = CStruct.struct(
            "rdma_cm_join_mc_attr_ex",
            JAVA_INT.withName("comp_mask"),
            JAVA_INT.withName("join_flags"),
            CStruct.PTR.withName("addr"));

    private static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    private static final long JOIN_FLAGS = CStruct.offset(LAYOUT, "join_flags");
    private static final long ADDR = CStruct.offset(LAYOUT, "addr");

    private RdmaCmJoinMcAttrEx() {}

    /** Makes one. */
    public static MemorySegment write(Arena arena, MemorySegment sockaddr, int joinFlags) {
        MemorySegment attr = arena.allocate(LAYOUT);
        attr.set(
                JAVA_INT,
                COMP_MASK,
                RdmaCmConstants.RDMA_CM_JOIN_MC_ATTR_ADDRESS | RdmaCmConstants.RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS);
        attr.set(JAVA_INT, JOIN_FLAGS, joinFlags);
        attr.set(CStruct.PTR, ADDR, sockaddr.address());
        return attr;
    }
}
