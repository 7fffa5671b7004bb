package org.verbena.transport.software;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;

/** The receives that a loop's endpoints share. */
public final class SoftwareReceiveQueue implements SharedReceiveQueue {
    private static final Logger LOG = LoggerFactory.getLogger(SoftwareReceiveQueue.class);

    /** SGEs of one shared receive: any endpoint must be able to take it, whatever it asked for itself. */
    public static final int MAX_SGES = 4;

    private final SoftwareDomain domain;
    private final WorkRing ring;
    private @Nullable Object attachment;

    public SoftwareReceiveQueue(SoftwareDomain domain, int depth) {
        this.domain = domain;
        ring = new WorkRing(depth, MAX_SGES);
    }

    public WorkRing ring() {
        return ring;
    }

    @Override
    public boolean postReceive(long workId, ScatterGatherList buffers) {
        WorkChecks.checkReceive(domain, MAX_SGES, buffers);
        if (ring.isFull()) {
            return false;
        }
        ring.add(workId, buffers);
        return true;
    }

    @Override
    public void flush() {
        // A receive is there for every peer as soon as it is in the ring.
    }

    @Override
    public int depth() {
        return ring.depth();
    }

    @Override
    public MemoryDomain memoryDomain() {
        return domain;
    }

    @Override
    public @Nullable Object attachment() {
        return attachment;
    }

    @Override
    public void attach(Object owner) {
        attachment = owner;
    }

    /** The loop ends: receives are given up and the owner of their buffers closed. */
    public void close() {
        while (!ring.isEmpty()) {
            ring.removeHead();
        }
        if (attachment instanceof AutoCloseable closeable) {
            try {
                closeable.close();
            } catch (Throwable e) {
                LOG.warn("closing the owner of the shared receives", e);
            }
        }
    }
}
