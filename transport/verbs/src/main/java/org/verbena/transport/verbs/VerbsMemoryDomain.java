package org.verbena.transport.verbs;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.memory.AccessFlag;

/** A device's protection domain, shared by all its endpoints. */
final class VerbsMemoryDomain implements MemoryDomain {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsMemoryDomain.class);

    /** A thread that is never the caller: memory that it may access is not confined to one thread. */
    private static final Thread OTHER_THREAD = Thread.ofPlatform().unstarted(() -> {});

    private static final Set<AccessFlag> REMOTE =
            Set.of(AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE, AccessFlag.REMOTE_ATOMIC);

    private final ProtectionDomain protectionDomain;
    private final AtomicLong registeredBytes = new AtomicLong();

    // Guarded by this.
    private final List<Runnable> lossListeners = new ArrayList<>();
    private boolean isLost;

    /** What the device may write in another order than packets came. */
    private final RelaxedOrdering relaxed;

    /** Whether windows are bound into what is registered here. Written once, before anything is. */
    private boolean hasWindows;

    VerbsMemoryDomain(ProtectionDomain protectionDomain, RelaxedOrdering relaxed) {
        this.protectionDomain = protectionDomain;
        this.relaxed = relaxed;
    }

    ProtectionDomain protectionDomain() {
        return protectionDomain;
    }

    /** The device makes windows: memory without rights for peers is registered so that they can be bound into it. */
    void useWindows() {
        hasWindows = true;
    }

    /**
     * Holds a region if windows can be bound into it.
     *
     * @param memory of any provider, or null
     * @param access of the window
     * @return the region, to be released; null if they cannot
     */
    @Nullable Region holdForWindow(@Nullable RegisteredMemory memory, Set<Access> access) {
        return memory instanceof Region mine
                        && mine.region.domain() == protectionDomain
                        && mine.region.access().contains(AccessFlag.MW_BIND)
                        && (mine.region.access().contains(AccessFlag.LOCAL_WRITE)
                                || access.equals(Set.of(Access.REMOTE_READ)))
                        && (!mine.region.access().contains(AccessFlag.RELAXED_ORDERING)
                                || relaxed.covers(windowRights(access)))
                        && mine.tryRetain()
                ? mine
                : null;
    }

    @Override
    public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
        EnumSet<AccessFlag> flags = flags(access);
        if (hasWindows && Collections.disjoint(flags, REMOTE)) {
            flags.add(AccessFlag.MW_BIND); // which opens nothing
        }
        return new Region(segment, access, registerRegion(segment, flags, flags), registeredBytes);
    }

    /**
     * Registers memory whose key opens nothing to a peer: that is for a window into it.
     *
     * @param segment as for {@link #register}
     * @param access what the window will be for
     * @return counted already
     */
    MemoryRegion registerForWindow(MemorySegment segment, Set<Access> access) {
        EnumSet<AccessFlag> flags = flags(access);
        flags.removeAll(REMOTE);
        flags.add(AccessFlag.MW_BIND);
        return registerRegion(segment, flags, windowRights(access));
    }

    /** What the window into such a region allows. */
    static EnumSet<AccessFlag> windowRights(Set<Access> access) {
        EnumSet<AccessFlag> flags = flags(access);
        flags.retainAll(REMOTE);
        return flags;
    }

    private MemoryRegion registerRegion(MemorySegment segment, EnumSet<AccessFlag> flags, Set<AccessFlag> rights) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "only native memory can be registered: allocate the segment from an Arena, not from an array");
        }
        if (segment.byteSize() == 0) {
            throw new IllegalArgumentException("an empty segment cannot be registered");
        }
        if (!segment.isAccessibleBy(OTHER_THREAD)) {
            throw new IllegalArgumentException(
                    "memory of a confined arena cannot be registered, since the device and the loops"
                            + " use it: allocate it from Arena.ofShared() or Arena.global()");
        }
        if (relaxed.covers(rights)) {
            flags.add(AccessFlag.RELAXED_ORDERING);
        }
        try {
            MemoryRegion region = protectionDomain.registerMemory(segment, flags);
            registeredBytes.addAndGet(segment.byteSize());
            return region;
        } catch (NativeRdmaException refused) {
            throw NativeFailures.of(refused);
        }
    }

    /** Gives a region of {@link #registerForWindow} back. */
    void deregister(MemoryRegion region) {
        deregister(region, registeredBytes);
    }

    private static void deregister(MemoryRegion region, AtomicLong registeredBytes) {
        long bytes = region.lengthBytes();
        try {
            region.close();
        } catch (NativeRdmaException refused) {
            throw NativeFailures.of(refused);
        }
        registeredBytes.addAndGet(-bytes);
    }

    /**
     * The device's side of a region.
     *
     * @throws IllegalArgumentException a region of another provider
     */
    static MemoryRegion regionOf(RegisteredMemory memory) {
        if (memory instanceof Region mine) {
            return mine.region;
        }
        throw new IllegalArgumentException(
                "the memory was registered with another provider: register it with this endpoint's"
                        + " memoryDomain()");
    }

    /**
     * Checks that this device knows a region.
     *
     * @throws IllegalArgumentException a region of another provider, or of another device
     */
    void checkOwn(RegisteredMemory memory) {
        if (regionOf(memory).domain() != protectionDomain) {
            throw new IllegalArgumentException(
                    "the memory was registered with another device: register it with this endpoint's"
                            + " memoryDomain()");
        }
    }

    private static EnumSet<AccessFlag> flags(Set<Access> access) {
        EnumSet<AccessFlag> flags = EnumSet.noneOf(AccessFlag.class);
        for (Access right : access) {
            switch (right) {
                case LOCAL_WRITE -> flags.add(AccessFlag.LOCAL_WRITE);
                case REMOTE_WRITE -> {
                    flags.add(AccessFlag.REMOTE_WRITE);
                    flags.add(AccessFlag.LOCAL_WRITE);
                }
                case REMOTE_READ -> flags.add(AccessFlag.REMOTE_READ);
                case REMOTE_ATOMIC -> {
                    flags.add(AccessFlag.REMOTE_ATOMIC);
                    flags.add(AccessFlag.LOCAL_WRITE);
                }
            }
        }
        return flags;
    }

    @Override
    public long registeredBytes() {
        return registeredBytes.get();
    }

    @Override
    public void whenLost(Runnable listener) {
        synchronized (this) {
            if (!isLost) {
                lossListeners.add(listener);
                return;
            }
        }
        listener.run();
    }

    /** The device is lost, and nothing on it is left but memory. Idempotent. */
    void lose() {
        List<Runnable> listeners;
        synchronized (this) {
            isLost = true;
            listeners = List.copyOf(lossListeners);
            lossListeners.clear();
        }
        for (Runnable listener : listeners) {
            try {
                listener.run();
            } catch (Throwable thrown) {
                LOG.error("A listener of a device's loss threw", thrown);
            }
        }
    }

    /** A memory region of the device. */
    static class Region extends RegisteredMemory {
        private final MemoryRegion region;
        private final AtomicLong registeredBytes;

        Region(MemorySegment segment, Set<Access> access, MemoryRegion region, VerbsMemoryDomain domain) {
            this(segment, access, region, domain.registeredBytes);
        }

        private Region(MemorySegment segment, Set<Access> access, MemoryRegion region, AtomicLong registeredBytes) {
            super(segment, access);
            this.registeredBytes = registeredBytes;
            this.region = region;
        }

        final MemoryRegion region() {
            return region;
        }

        @Override
        public int localKey() {
            return region.localKey();
        }

        @Override
        public int remoteKey() {
            return region.remoteKey();
        }

        @Override
        protected void deregister() {
            VerbsMemoryDomain.deregister(region, registeredBytes);
        }
    }
}
