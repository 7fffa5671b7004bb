package org.verbena.transport.protocol.connection;

import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.ProviderException;
import org.verbena.transport.RegisteredMemory;

/** A device's memory: keys open what they are registered for, and nothing once that is gone. */
final class SimulatedDomain implements MemoryDomain {
    private final Map<Integer, Region> regions = new HashMap<>();
    private int nextKey = 0x1000;
    private long registeredBytes;
    int registrations;

    /** The limit of locked memory is reached. */
    boolean refuses;

    @Override
    public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
        if (refuses) {
            throw new ProviderException("no more memory can be locked");
        }
        registrations++;
        return new Region(segment, access);
    }

    @Override
    public long registeredBytes() {
        return registeredBytes;
    }

    int liveRegions() {
        return regions.size();
    }

    /** The peer's access: null if it is refused. */
    @Nullable MemorySegment open(int key, long address, long lengthBytes, Access right) {
        Region region = regions.get(key);
        if (region == null
                || !region.access().contains(right)
                || address < region.address()
                || address + lengthBytes > region.address() + region.lengthBytes()) {
            return null;
        }
        return region.segment().asSlice(address - region.address(), lengthBytes);
    }

    private final class Region extends RegisteredMemory {
        private final int key = nextKey++;

        Region(MemorySegment segment, Set<Access> access) {
            super(segment, access);
            regions.put(key, this);
            registeredBytes += segment.byteSize();
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
            if (regions.remove(key) == null) {
                throw new IllegalStateException("deregistered twice");
            }
            registeredBytes -= segment().byteSize();
        }
    }
}
