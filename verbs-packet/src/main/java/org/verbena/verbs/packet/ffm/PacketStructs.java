package org.verbena.verbs.packet.ffm;

import java.lang.foreign.GroupLayout;
import java.util.List;

/** Every struct of raw packets that is bound, for the layout test. */
public final class PacketStructs {
    public static final List<GroupLayout> ALL = List.of(
            IbvOpsWr.LAYOUT,
            IbvFlowAttr.LAYOUT,
            IbvFlow.LAYOUT,
            IbvFlowEthFilter.LAYOUT,
            IbvFlowSpecEth.LAYOUT,
            IbvFlowIpv4Filter.LAYOUT,
            IbvFlowSpecIpv4.LAYOUT,
            IbvFlowIpv4ExtFilter.LAYOUT,
            IbvFlowSpecIpv4Ext.LAYOUT,
            IbvFlowIpv6Filter.LAYOUT,
            IbvFlowSpecIpv6.LAYOUT,
            IbvFlowEspFilter.LAYOUT,
            IbvFlowSpecEsp.LAYOUT,
            IbvFlowTcpUdpFilter.LAYOUT,
            IbvFlowSpecTcpUdp.LAYOUT,
            IbvFlowGreFilter.LAYOUT,
            IbvFlowSpecGre.LAYOUT,
            IbvFlowMplsFilter.LAYOUT,
            IbvFlowSpecMpls.LAYOUT,
            IbvFlowTunnelFilter.LAYOUT,
            IbvFlowSpecTunnel.LAYOUT,
            IbvFlowSpecActionTag.LAYOUT,
            IbvFlowSpecActionDrop.LAYOUT,
            IbvFlowSpecActionHandle.LAYOUT,
            IbvFlowSpecCounterAction.LAYOUT,
            IbvFlowAction.LAYOUT,
            IbvFlowActionEspAttr.LAYOUT,
            IbUverbsFlowActionEsp.LAYOUT,
            IbUverbsFlowActionEspKeymatAesGcm.LAYOUT,
            IbUverbsFlowActionEspReplayBmp.LAYOUT,
            IbUverbsFlowActionEspEncap.LAYOUT,
            IbvCounters.LAYOUT,
            IbvCountersInitAttr.LAYOUT,
            IbvCounterAttachAttr.LAYOUT,
            IbvWqInitAttr.LAYOUT,
            IbvWqAttr.LAYOUT,
            IbvWq.LAYOUT,
            IbvRwqIndTable.LAYOUT,
            IbvRwqIndTableInitAttr.LAYOUT);

    private PacketStructs() {}
}
