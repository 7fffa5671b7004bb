package org.verbena.transport.verbs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ffm.CpuAffinity;
import org.verbena.verbs.Device;
import org.verbena.verbs.ffm.CpuList;

/**
 * Keeps threads on the processors near their device, on machines with several NUMA nodes: what a loop writes and what
 * the device writes then need not cross to another node, and memory that the thread touches first is of the device's
 * node, the chunks of pools and the queues of the device's library among it.
 *
 * <p>{@code -Dorg.verbena.transport.verbs.placement=off} leaves threads where the system puts them.
 */
final class ProcessorAffinity {
    private static final Logger LOG = LoggerFactory.getLogger(ProcessorAffinity.class);

    static final String PROPERTY = "org.verbena.transport.verbs.placement";

    /** Where the kernel lists its nodes. */
    static final Path NODES = Path.of("/sys/devices/system/node/online");

    /** Another file in tests. */
    static volatile Path nodes = NODES;

    private ProcessorAffinity() {}

    private static boolean isOff() {
        return "off".equals(System.getProperty(PROPERTY));
    }

    /** The processors near a device that it makes sense to prefer: none on a machine with one node. */
    static BitSet near(Device device) {
        if (isOff() || device.numaNode() < 0) {
            return new BitSet();
        }
        try {
            return CpuList.parse(Files.readString(nodes)).cardinality() > 1 ? device.localProcessors() : new BitSet();
        } catch (IOException | NumberFormatException none) {
            LOG.debug("The NUMA nodes are not known", none);
            return new BitSet();
        }
    }

    /**
     * Keeps this thread on processors, as far as it may run there: a choice that the program, or what started it, has
     * made before is narrowed and never widened.
     *
     * @param processors near its device; empty to leave it where it is
     * @return whether it is kept there
     */
    static boolean keepOn(BitSet processors) {
        if (processors.isEmpty()) {
            return false;
        }
        BitSet allowed = CpuAffinity.get();
        BitSet kept = (BitSet) allowed.clone();
        kept.and(processors);
        if (kept.isEmpty() || kept.equals(allowed)) {
            return false;
        }
        int errno = CpuAffinity.set(kept);
        LOG.debug(
                "{} is kept on processors {}: errno {}", Thread.currentThread().getName(), kept, errno);
        return errno == 0;
    }
}
