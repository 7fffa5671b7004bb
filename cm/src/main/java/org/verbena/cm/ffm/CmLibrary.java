package org.verbena.cm.ffm;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.NativeLibrary;

/** Where librdmacm is. */
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
}
