package com.ibm.disni.util;

import org.verbena.disni.ffm.ThreadAffinity;

/** In the place of DiSNI's class, which loads {@code libdisni.so}. */
public class NativeAffinity {
    /** Has static methods only; DiSNI's class can be made as well. */
    public NativeAffinity() {}

    /**
     * Binds the calling thread to processors, if they are there.
     *
     * @param affinity a bit for each of the first 63; nothing is done for 0 and less
     */
    public static void setAffinity(long affinity) {
        if (affinity > 0) {
            ThreadAffinity.set(affinity);
        }
    }

    /**
     * Where the calling thread may run.
     *
     * @return a bit for each of the first 64 processors
     */
    public static long getAffinity() {
        return ThreadAffinity.get();
    }
}
