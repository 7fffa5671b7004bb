package org.verbena.verbs.ffm;

import java.lang.foreign.GroupLayout;
import java.util.List;

/** Every struct of libibverbs that is bound, for the layout test. */
public final class Structs {
    public static final List<GroupLayout> ALL = List.of(
            IbvGidEntry.LAYOUT,
            IbvDevice.LAYOUT,
            IbvContextOps.LAYOUT,
            IbvContext.LAYOUT,
            VerbsContext.LAYOUT,
            IbvDeviceAttr.LAYOUT,
            IbvPortAttr.LAYOUT,
            IbvAsyncEvent.LAYOUT,
            IbvWc.LAYOUT,
            IbvPd.LAYOUT,
            IbvMr.LAYOUT,
            IbvGlobalRoute.LAYOUT,
            IbvAhAttr.LAYOUT,
            IbvSrqAttr.LAYOUT,
            IbvSrqInitAttr.LAYOUT,
            IbvQpCap.LAYOUT,
            IbvQpInitAttr.LAYOUT,
            IbvQpAttr.LAYOUT,
            IbvSge.LAYOUT,
            IbvMwBindInfo.LAYOUT,
            IbvSendWr.LAYOUT,
            IbvRecvWr.LAYOUT,
            IbvSrq.LAYOUT,
            IbvQp.LAYOUT,
            IbvCompChannel.LAYOUT,
            IbvCq.LAYOUT);

    private Structs() {}
}
