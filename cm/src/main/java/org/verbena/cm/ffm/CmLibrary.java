package org.verbena.cm.ffm;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.NativeLibrary;

/** Where librdmacm is, and whether it is one that is known. */
public final class CmLibrary {
    /** The library; another file is loaded if the property {@code org.verbena.cm.library} names one. */
    public static final NativeLibrary LIBRARY = load(System.getProperty("org.verbena.cm.library", "librdmacm.so.1"));

    private CmLibrary() {}

    /**
     * Not loaded if this module has no native access to what its functions return, even if libibverbs's module has it.
     */
    @SuppressWarnings("restricted") // whether this is allowed is the question
    private static NativeLibrary load(String soname) {
        try {
            MemorySegment ignored = MemorySegment.NULL.reinterpret(1);
        } catch (IllegalCallerException denied) {
            return NativeLibrary.denied(soname, CmLibrary.class.getModule());
        }
        return NativeLibrary.load(
                soname,
                "Install rdma-core's connection manager: apt-get install librdmacm1, or dnf install librdmacm.");
    }

    /**
     * Checks the layout of an id by reading back what was just written at both ends of the struct.
     *
     * @param id a new {@code rdma_cm_id}
     * @param channel that it was made on
     * @param context that it was made with
     * @param portSpace that it was made for
     * @param qpType that librdmacm gives it
     * @throws UnsupportedOperationException librdmacm has another layout
     */
    public static void requireKnownLayout(MemorySegment id, long channel, long context, int portSpace, int qpType) {
        boolean known = id.get(CStruct.PTR, RdmaCmId.CHANNEL) == channel
                && id.get(CStruct.PTR, RdmaCmId.CONTEXT) == context
                && id.get(CStruct.ENUM, RdmaCmId.PS) == portSpace
                && id.get(CStruct.ENUM, RdmaCmId.QP_TYPE) == qpType
                && id.get(CStruct.PTR, RdmaCmId.VERBS) == 0
                && id.get(CStruct.PTR, RdmaCmId.QP) == 0
                && id.get(CStruct.PTR, RdmaCmId.SRQ) == 0;
        if (!known) {
            throw new UnsupportedOperationException(LIBRARY
                    + " has a layout of struct rdma_cm_id that this version of Verbena does not know (rdma-core 17 to"
                    + " 64 are known): use a newer Verbena, or an older rdma-core");
        }
    }
}
