package org.verbena.api;

import java.lang.management.ManagementFactory;

/** What this process uses, for tests that say what a channel costs. */
public final class MemoryInUse {
    private MemoryInUse() {}

    /** Bytes of the heap after so many collections that the last two freed nothing more. */
    public static long heapBytes() {
        long min = Long.MAX_VALUE;
        for (int same = 0; same < 2; same++) {
            System.gc();
            long used = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
            if (used < min) {
                min = used;
                same = -1;
            }
        }
        return min;
    }

    /**
     * Bytes of registered memory that receives and sends have. The pools' chunks come in megabytes and would hide what
     * one channel takes.
     */
    public static long registeredBytes(RdmaEventLoopGroup group) {
        ProviderStatistics now = group.providerStatistics();
        return now.sendBuffers().usedBytes() + now.receiveBuffers().usedBytes();
    }
}
