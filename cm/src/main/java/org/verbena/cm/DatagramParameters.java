package org.verbena.cm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.verbena.cm.ffm.RdmaCmEvent;
import org.verbena.verbs.Gid;
import org.verbena.verbs.ffm.IbvAhAttr;
import org.verbena.verbs.ffm.IbvGlobalRoute;

/**
 * How to send datagrams to whom an event is about: the peer that was looked up or that asked, or the group that was joined. Make an
 * address handle of it.
 *
 * @param privateData of the request or its answer; copied
 * @param destinationGid the peer's or the group's GID; zero without a global route
 * @param flowLabel of the global route
 * @param sourceGidIndex which of this side's GIDs to send from
 * @param hopLimit of the global route
 * @param trafficClass of the global route
 * @param destinationLid the peer's or the group's LID; 0 on RoCE
 * @param serviceLevel of the path
 * @param sourcePathBits of this side's LID
 * @param staticRate limit of the path
 * @param global whether there is a global route; always on RoCE
 * @param portNumber this side's port, from 1
 * @param queuePairNumber to send to; 0xffffff for a group
 * @param queueKey to send with
 *     <p>Source: rdma_get_cm_event(3), ibv_create_ah(3)
 */
public record DatagramParameters(
        byte[] privateData,
        Gid destinationGid,
        int flowLabel,
        int sourceGidIndex,
        int hopLimit,
        int trafficClass,
        int destinationLid,
        int serviceLevel,
        int sourcePathBits,
        int staticRate,
        boolean global,
        int portNumber,
        int queuePairNumber,
        int queueKey) {

    /** The queue key of everything that librdmacm sets up for {@link PortSpace#UDP}. */
    public static final int UDP_QUEUE_KEY = 0x01234567;

    /** Copies the private data. */
    public DatagramParameters {
        privateData = privateData.clone();
    }

    static DatagramParameters copy(MemorySegment ud, boolean multicast) {
        MemorySegment address = RdmaCmEvent.udAddressHandle(ud);
        long route = IbvAhAttr.GRH;
        return new DatagramParameters(
                // Multicast events have the join's context in place of private data.
                multicast ? new byte[0] : RdmaCmEvent.udPrivateData(ud),
                Gid.of(address.asSlice(route + IbvGlobalRoute.DGID, Gid.BYTES).toArray(ValueLayout.JAVA_BYTE)),
                address.get(ValueLayout.JAVA_INT, route + IbvGlobalRoute.FLOW_LABEL),
                unsignedByte(address, route + IbvGlobalRoute.SGID_INDEX),
                unsignedByte(address, route + IbvGlobalRoute.HOP_LIMIT),
                unsignedByte(address, route + IbvGlobalRoute.TRAFFIC_CLASS),
                Short.toUnsignedInt(address.get(ValueLayout.JAVA_SHORT, IbvAhAttr.DLID)),
                unsignedByte(address, IbvAhAttr.SL),
                unsignedByte(address, IbvAhAttr.SRC_PATH_BITS),
                unsignedByte(address, IbvAhAttr.STATIC_RATE),
                address.get(ValueLayout.JAVA_BYTE, IbvAhAttr.IS_GLOBAL) != 0,
                unsignedByte(address, IbvAhAttr.PORT_NUM),
                RdmaCmEvent.udQpNum(ud),
                RdmaCmEvent.udQkey(ud));
    }

    private static int unsignedByte(MemorySegment segment, long offset) {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, offset));
    }

    /**
     * The private data.
     *
     * @return a copy
     */
    @Override
    public byte[] privateData() {
        return privateData.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DatagramParameters that
                && Arrays.equals(privateData, that.privateData)
                && destinationGid.equals(that.destinationGid)
                && flowLabel == that.flowLabel
                && sourceGidIndex == that.sourceGidIndex
                && hopLimit == that.hopLimit
                && trafficClass == that.trafficClass
                && destinationLid == that.destinationLid
                && serviceLevel == that.serviceLevel
                && sourcePathBits == that.sourcePathBits
                && staticRate == that.staticRate
                && global == that.global
                && portNumber == that.portNumber
                && queuePairNumber == that.queuePairNumber
                && queueKey == that.queueKey;
    }

    @Override
    public int hashCode() {
        return (destinationGid.hashCode() * 31 + queuePairNumber) * 31 + destinationLid;
    }

    @Override
    public String toString() {
        return "DatagramParameters[queuePairNumber=" + queuePairNumber + ", queueKey=0x"
                + Integer.toHexString(queueKey) + ", destinationGid=" + destinationGid + ", destinationLid="
                + destinationLid + ", sourceGidIndex=" + sourceGidIndex + ", portNumber=" + portNumber
                + ", privateData=" + privateData.length + " bytes]";
    }
}
