package org.verbena.transport.buffer;

import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;

/** A domain without a device that accounts for every registered byte and can refuse. */
public final class CountingMemoryDomain implements MemoryDomain {
    private final AtomicLong registeredBytes = new AtomicLong();
    private final AtomicInteger registrations = new AtomicInteger();
    private final AtomicInteger nextKey = new AtomicInteger(0x100);
    private final Map<Integer, Region> live = new ConcurrentHashMap<>();

    /** Thrown by the next registrations, if set. */
    public volatile @Nullable RuntimeException refusal;

    @Override
    public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
        RuntimeException now = refusal;
        if (now != null) {
            throw now;
        }
        if (!segment.isNative() || segment.byteSize() == 0) {
            throw new IllegalArgumentException("not native memory: " + segment);
        }
        return new Region(segment, access);
    }

    @Override
    public long registeredBytes() {
        return registeredBytes.get();
    }

    /** The number of registrations so far. */
    public int registrations() {
        return registrations.get();
    }

    /** The number of regions that are registered now. */
    public int liveRegions() {
        return live.size();
    }

    private final class Region extends RegisteredMemory {
        private final int key = nextKey.getAndIncrement();

        Region(MemorySegment segment, Set<Access> access) {
            super(segment, access);
            registeredBytes.addAndGet(segment.byteSize());
            registrations.incrementAndGet();
            live.put(key, this);
        }

        @Override
        public int localKey() {
            return key;
        }

        @Override
        public int remoteKey() {
            return key;
        }

        @Override
        protected void deregister() {
            if (!segment().scope().isAlive()) {
                throw new IllegalStateException("memory was freed while it was registered");
            }
            if (live.remove(key) == null) {
                throw new IllegalStateException("deregistered twice");
            }
            registeredBytes.addAndGet(-segment().byteSize());
        }
    }
}
