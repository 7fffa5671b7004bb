package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_parent_domain_init_attr}: what a parent domain is made with. Source: infiniband/verbs.h */
public final class IbvParentDomainInitAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_parent_domain_init_attr",
            CStruct.PTR.withName("pd"),
            CStruct.PTR.withName("td"),
            CStruct.U32.withName("comp_mask"),
            CStruct.PTR.withName("alloc"),
            CStruct.PTR.withName("free"),
            CStruct.PTR.withName("pd_context"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long TD = CStruct.offset(LAYOUT, "td");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long ALLOC = CStruct.offset(LAYOUT, "alloc");
    public static final long FREE = CStruct.offset(LAYOUT, "free");
    public static final long PD_CONTEXT = CStruct.offset(LAYOUT, "pd_context");

    private IbvParentDomainInitAttr() {}
}
