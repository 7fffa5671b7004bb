package org.verbena.cm.ffm;

import java.lang.foreign.GroupLayout;
import java.util.List;

/** Every struct of librdmacm that is bound, for the layout test. */
public final class Structs {
    public static final List<GroupLayout> ALL = List.of(
            RdmaCmId.IB_ADDR,
            RdmaCmId.ADDR,
            RdmaCmId.ROUTE,
            RdmaCmId.LAYOUT,
            RdmaConnParam.LAYOUT,
            RdmaCmEvent.UD_PARAM,
            RdmaCmEvent.LAYOUT,
            RdmaAddrinfo.LAYOUT,
            RdmaEventChannel.LAYOUT,
            RdmaCmJoinMcAttrEx.LAYOUT,
            Sockaddr.IN,
            Sockaddr.IN6,
            Sockaddr.IB);

    private Structs() {}
}
