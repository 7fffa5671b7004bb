package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_pci_atomic_caps}: atomics towards other PCI devices. Source: infiniband/verbs.h */
public final class IbvPciAtomicCaps {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_pci_atomic_caps",
            CStruct.U16.withName("fetch_add"),
            CStruct.U16.withName("swap"),
            CStruct.U16.withName("compare_swap"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long FETCH_ADD = CStruct.offset(LAYOUT, "fetch_add");
    public static final long SWAP = CStruct.offset(LAYOUT, "swap");
    public static final long COMPARE_SWAP = CStruct.offset(LAYOUT, "compare_swap");

    private IbvPciAtomicCaps() {}
}
