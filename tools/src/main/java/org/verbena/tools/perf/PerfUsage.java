package org.verbena.tools.perf;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/**
 * The resources that this process has used.
 *
 * @param cpuNanos processor time of all its threads, in nanoseconds
 * @param allocatedBytes of the heap, by all threads, those that have ended included
 */
record PerfUsage(long cpuNanos, long allocatedBytes) {
    static PerfUsage untilNow() {
        OperatingSystemMXBean system = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        ThreadMXBean threads = ManagementFactory.getPlatformMXBean(ThreadMXBean.class);
        return new PerfUsage(system.getProcessCpuTime(), threads.getTotalThreadAllocatedBytes());
    }

    /** The resources used since then. */
    PerfUsage since(PerfUsage before) {
        return new PerfUsage(cpuNanos - before.cpuNanos, allocatedBytes - before.allocatedBytes);
    }
}
