package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvAhAttr;
import org.verbena.verbs.ffm.IbvGlobalRoute;
import org.verbena.verbs.ffm.Ranges;

/**
 * The address vector of a connected queue pair or of an address handle.
 *
 * <p>Source: ibv_create_ah(3), ibv_modify_qp(3)
 *
 * @param port the local port, 1 or more
 * @param route across subnets, needed on RoCE; null for InfiniBand within a subnet
 * @param destinationLid the peer's LID, 0 on RoCE
 * @param serviceLevel 0 to 15; on RoCE the priority
 * @param sourcePathBits which of the local port's LIDs is used, 0 to 127
 * @param staticRate C's encoding of a rate limit, 0 for none
 */
public record AddressVector(
        int port,
        @Nullable GlobalRoute route,
        int destinationLid,
        int serviceLevel,
        int sourcePathBits,
        int staticRate) {

    /** Checks ranges. */
    public AddressVector {
        Ranges.check("port", port, 1, 255);
        Ranges.check("destinationLid", destinationLid, 0, 0xffff);
        Ranges.check("serviceLevel", serviceLevel, 0, 15);
        Ranges.check("sourcePathBits", sourcePathBits, 0, 127);
        Ranges.check("staticRate", staticRate, 0, 255);
    }

    /**
     * An address on RoCE.
     *
     * @param port the local port
     * @param route to the peer
     * @return the address
     */
    public static AddressVector global(int port, GlobalRoute route) {
        return new AddressVector(port, route, 0, 0, 0, 0);
    }

    /**
     * An address within an InfiniBand subnet.
     *
     * @param port the local port
     * @param destinationLid the peer's LID
     * @return the address
     */
    public static AddressVector local(int port, int destinationLid) {
        return new AddressVector(port, null, destinationLid, 0, 0, 0);
    }

    void write(MemorySegment struct, long offset) {
        GlobalRoute global = route;
        if (global != null) {
            Context.writeGid(struct, offset + IbvAhAttr.GRH + IbvGlobalRoute.DGID, global.destination());
            struct.set(CStruct.U32, offset + IbvAhAttr.GRH + IbvGlobalRoute.FLOW_LABEL, global.flowLabel());
            struct.set(CStruct.U8, offset + IbvAhAttr.GRH + IbvGlobalRoute.SGID_INDEX, (byte) global.sourceGidIndex());
            struct.set(CStruct.U8, offset + IbvAhAttr.GRH + IbvGlobalRoute.HOP_LIMIT, (byte) global.hopLimit());
            struct.set(CStruct.U8, offset + IbvAhAttr.GRH + IbvGlobalRoute.TRAFFIC_CLASS, (byte) global.trafficClass());
        }
        struct.set(CStruct.U8, offset + IbvAhAttr.IS_GLOBAL, (byte) (global == null ? 0 : 1));
        struct.set(CStruct.U16, offset + IbvAhAttr.DLID, (short) destinationLid);
        struct.set(CStruct.U8, offset + IbvAhAttr.SL, (byte) serviceLevel);
        struct.set(CStruct.U8, offset + IbvAhAttr.SRC_PATH_BITS, (byte) sourcePathBits);
        struct.set(CStruct.U8, offset + IbvAhAttr.STATIC_RATE, (byte) staticRate);
        struct.set(CStruct.U8, offset + IbvAhAttr.PORT_NUM, (byte) port);
    }

    /**
     * Reads the C struct, for bindings of libraries that hand out addresses, such as librdmacm.
     *
     * @param struct what the {@code ibv_ah_attr} is in
     * @param offset where it begins
     * @return the address
     */
    public static AddressVector read(MemorySegment struct, long offset) {
        GlobalRoute route = struct.get(CStruct.U8, offset + IbvAhAttr.IS_GLOBAL) == 0
                ? null
                : new GlobalRoute(
                        Context.readGid(struct, offset + IbvAhAttr.GRH + IbvGlobalRoute.DGID),
                        u8(struct, offset + IbvAhAttr.GRH + IbvGlobalRoute.SGID_INDEX),
                        u8(struct, offset + IbvAhAttr.GRH + IbvGlobalRoute.HOP_LIMIT),
                        u8(struct, offset + IbvAhAttr.GRH + IbvGlobalRoute.TRAFFIC_CLASS),
                        struct.get(CStruct.U32, offset + IbvAhAttr.GRH + IbvGlobalRoute.FLOW_LABEL) & 0xfffff);
        return new AddressVector(
                Math.max(1, u8(struct, offset + IbvAhAttr.PORT_NUM)),
                route,
                Short.toUnsignedInt(struct.get(CStruct.U16, offset + IbvAhAttr.DLID)),
                u8(struct, offset + IbvAhAttr.SL) & 15,
                u8(struct, offset + IbvAhAttr.SRC_PATH_BITS) & 127,
                u8(struct, offset + IbvAhAttr.STATIC_RATE));
    }

    private static int u8(MemorySegment struct, long offset) {
        return Byte.toUnsignedInt(struct.get(CStruct.U8, offset));
    }
}
