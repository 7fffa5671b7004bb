package org.verbena.tools.interop.pingpong;

import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.DeviceMemory;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.AdviceKind;

/**
 * The memory of a {@link PingPongSession}'s messages: one buffer for all sends and receives, registered as the options
 * say. With device memory this process has a copy of the buffer: it is copied to the device before the first message,
 * and back to be checked.
 */
final class PingPongMemory implements AutoCloseable {
    private static final int PAGE_BYTES = 4096;

    /** The content of the buffer before anything is received, as in C. */
    private static final byte FILLER = 0x7b;

    private final Deque<AutoCloseable> resources = new ArrayDeque<>();
    private final int headerBytes;
    private final int sizeBytes;
    private final MemorySegment buffer;
    private final @Nullable DeviceMemory onDevice;
    private final MemoryRegion region;

    /** Where the buffer begins in the region. */
    private final long regionOffset;

    /**
     * Allocates and registers it.
     *
     * @param headerBytes the bytes that a receive has in front of the message
     * @param err gets a line if pages cannot be prefetched, which does no harm
     */
    PingPongMemory(
            ProtectionDomain domain, int headerBytes, int sizeBytes, PingPongFeatures features, PrintWriter err) {
        this.headerBytes = headerBytes;
        this.sizeBytes = sizeBytes;
        try {
            Arena arena = own(Arena.ofShared());
            buffer = arena.allocate(headerBytes + Math.max(1, sizeBytes), PAGE_BYTES);
            buffer.fill(FILLER);
            onDevice =
                    features.deviceMemory() ? own(domain.context().allocateDeviceMemory(buffer.byteSize(), 0)) : null;
            region = own(register(domain, features, buffer, onDevice));
            regionOffset = features.implicit() ? buffer.address() : 0;
            if (features.prefetching()) {
                prefetch(err);
            }
        } catch (RuntimeException refused) {
            close();
            throw refused;
        }
    }

    private <T extends AutoCloseable> T own(T resource) {
        resources.push(resource);
        return resource;
    }

    private static MemoryRegion register(
            ProtectionDomain domain, PingPongFeatures features, MemorySegment buffer, @Nullable DeviceMemory onDevice) {
        Set<AccessFlag> access = EnumSet.of(AccessFlag.LOCAL_WRITE);
        if (onDevice != null) {
            access.add(AccessFlag.ZERO_BASED);
            return domain.registerDeviceMemory(onDevice, 0, onDevice.lengthBytes(), access);
        }
        if (features.implicit()) {
            return domain.registerAddressSpace(access);
        }
        if (features.onDemand()) {
            access.add(AccessFlag.ON_DEMAND);
        }
        return domain.registerMemory(buffer, access);
    }

    private void prefetch(PrintWriter err) {
        try {
            region.advise(AdviceKind.PREFETCH_WRITE, true, regionOffset, Math.toIntExact(buffer.byteSize()));
        } catch (VerbsException refused) {
            err.println("pingpong: continuing without -P (--prefetch): " + refused.getMessage());
        }
    }

    /** The key for work requests. */
    MemoryRegion region() {
        return region;
    }

    /** Where in the region a receive begins. */
    long receiveOffset() {
        return regionOffset;
    }

    /** How long a receive is. */
    int receiveBytes() {
        return headerBytes + sizeBytes;
    }

    /** Where in the region the message begins. */
    long messageOffset() {
        return regionOffset + headerBytes;
    }

    /** The message, in this process. */
    MemorySegment message() {
        return buffer.asSlice(headerBytes, sizeBytes);
    }

    /** Whether the message can be sent without the region, as a copy. */
    boolean isHere() {
        return onDevice == null;
    }

    /** Before the client's first message: marks each page if the server is to check the content. */
    void prepare(boolean marked) {
        for (int at = 0; marked && at < sizeBytes; at += PAGE_BYTES) {
            message().set(ValueLayout.JAVA_BYTE, at, (byte) 0);
        }
        if (onDevice != null) {
            onDevice.copyFrom(buffer, 0);
        }
    }

    /** Checks the first byte of each page: the client has set it, and the server sends back what it got. */
    void validate() {
        if (onDevice != null) {
            onDevice.copyTo(0, buffer);
        }
        for (int at = 0; at < sizeBytes; at += PAGE_BYTES) {
            if (message().get(ValueLayout.JAVA_BYTE, at) != 0) {
                throw new CommandFailure("invalid data in page " + at / PAGE_BYTES);
            }
        }
    }

    @Override
    public void close() {
        PingPongSession.closeAll(resources);
    }
}
