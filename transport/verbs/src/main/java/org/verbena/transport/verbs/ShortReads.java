package org.verbena.transport.verbs;

import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.ffm.Siw;
import org.verbena.verbs.work.SendFlags;

/**
 * Reads of few bytes that lie on two of the peer's pages: siw would answer them wrongly, so they are posted in two
 * parts, each on one page.
 */
final class ShortReads {
    private static final int PAGE_BYTES = 4096;

    private ShortReads() {}

    /** Whether siw would answer it wrongly. */
    static boolean isOne(WorkRequest work) {
        if (work.opcode() != WorkRequest.Opcode.READ) {
            return false;
        }
        long bytes = work.buffers().totalBytes();
        return bytes <= Siw.SHORT_BYTES && bytes > bytesOfPageFrom(work.remoteAddress());
    }

    private static int bytesOfPageFrom(long address) {
        return PAGE_BYTES - (int) (address & PAGE_BYTES - 1);
    }

    /**
     * Stages the two parts, both signalled.
     *
     * @param queue has room for two
     * @param work has one SGE
     * @param firstId id of the first part's work request
     * @param secondId id of the second's
     */
    static void stage(SendQueue queue, WorkRequest work, long firstId, long secondId) {
        ScatterGatherList sge = work.buffers();
        int key = sge.region(0).localKey();
        long sink = sge.address(0);
        long address = work.remoteAddress();
        int first = bytesOfPageFrom(address);
        int fence = (work.flags() & WorkRequest.FENCE) != 0 ? SendFlags.FENCE : 0;
        queue.read(firstId, SendFlags.SIGNALED | fence, address, work.remoteKey());
        queue.uncheckedSge(sink, first, key);
        queue.read(secondId, SendFlags.SIGNALED, address + first, work.remoteKey());
        queue.uncheckedSge(sink + first, sge.length(0) - first, key);
    }
}
