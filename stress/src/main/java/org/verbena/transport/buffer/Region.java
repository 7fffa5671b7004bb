package org.verbena.transport.buffer;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;

/** Registered memory without a device: counts how often it was forgotten. */
public final class Region extends RegisteredMemory {
    private static final MemorySegment BYTES = Arena.global().allocate(8);

    /** How often it was deregistered from the device. */
    public final AtomicInteger deregistrations = new AtomicInteger();

    /** A region of a few bytes that nobody uses. */
    public Region() {
        this(BYTES, Set.of());
    }

    private Region(MemorySegment segment, Set<MemoryDomain.Access> access) {
        super(segment, access);
    }

    /** A domain whose regions these are. */
    public static MemoryDomain domain() {
        return new MemoryDomain() {
            @Override
            public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
                return new Region(segment, access);
            }

            @Override
            public long registeredBytes() {
                return 0;
            }
        };
    }

    @Override
    public int localKey() {
        return 1;
    }

    @Override
    public int remoteKey() {
        return 1;
    }

    @Override
    protected void deregister() {
        deregistrations.incrementAndGet();
    }
}
