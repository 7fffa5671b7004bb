package org.verbena.verbs.address;

import org.verbena.verbs.ffm.Ranges;

/**
 * The part of an address that crosses subnets; on RoCE all of it.
 *
 * <p>Source: ibv_create_ah(3)
 *
 * @param destination the peer's GID
 * @param sourceGidIndex which of this port's GIDs is used; on RoCE it decides between versions 1 and 2
 * @param hopLimit how many routers may be crossed, 0 to 255; 1 or more on RoCE v2
 * @param trafficClass as IPv6's, 0 to 255
 * @param flowLabel 20 bits; RoCE v2 derives the UDP source port from it
 */
public record GlobalRoute(Gid destination, int sourceGidIndex, int hopLimit, int trafficClass, int flowLabel) {

    /** Enough for most networks. */
    private static final int DEFAULT_HOP_LIMIT = 64;

    private static final int FLOW_LABEL_MASK = 0xfffff;

    /** Checks ranges. */
    public GlobalRoute {
        Ranges.check("sourceGidIndex", sourceGidIndex, 0, 255);
        Ranges.check("hopLimit", hopLimit, 0, 255);
        Ranges.check("trafficClass", trafficClass, 0, 255);
        Ranges.check("flowLabel", flowLabel, 0, FLOW_LABEL_MASK);
    }

    /**
     * A route with 64 hops, no traffic class and no flow label.
     *
     * @param destination the peer's GID
     * @param sourceGidIndex which of this port's GIDs is used
     * @return the route
     */
    public static GlobalRoute to(Gid destination, int sourceGidIndex) {
        return new GlobalRoute(destination, sourceGidIndex, DEFAULT_HOP_LIMIT, 0, 0);
    }

    /**
     * Which UDP source port RoCE v2 packets get from the flow label: switches spread flows by it.
     *
     * @return 0xc000 to 0xffff
     */
    public int udpSourcePort() {
        return ((flowLabel & 0x3fff) ^ (flowLabel >> 14)) | 0xc000;
    }
}
