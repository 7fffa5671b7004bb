package org.verbena.api;

import java.lang.management.ManagementFactory;

/** What this process uses, for tests that say what a channel costs. */
public final class MemoryInUse {
    private MemoryInUse() {}

    /** Bytes of the heap after a collection. */
    public static long heapBytes() throws InterruptedException {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(20);
            least = Math.min(
                    least,
                    ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
        }
        return least;
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
