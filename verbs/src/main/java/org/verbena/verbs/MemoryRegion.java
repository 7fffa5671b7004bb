package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvMr;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;

/**
 * Memory that a device knows. Its owner keeps it open, and the segment's arena alive, until every work request that uses it has completed:
 * the device writes to the pages whatever the JVM thinks of them.
 *
 * <p>Source: ibv_reg_mr(3)
 */
public final class MemoryRegion extends VerbsObject {
    private static final int MODIFYING = AccessFlag.REMOTE_WRITE.value() | AccessFlag.REMOTE_ATOMIC.value();

    private final ProtectionDomain domain;
    private final MemorySegment segment;
    private final Set<AccessFlag> access;
    private final int accessMask;
    private final long address;
    private final long lengthBytes;
    private final int localKey;
    private final int remoteKey;

    private MemoryRegion(long ibvMr, ProtectionDomain domain, MemorySegment segment, Set<AccessFlag> access) {
        super(ibvMr, domain);
        this.domain = domain;
        this.segment = segment;
        this.access = Set.copyOf(access);
        this.accessMask = AccessFlag.mask(access);
        this.address = segment.address();
        this.lengthBytes = segment.byteSize();
        MemorySegment struct = Pointers.view(ibvMr, IbvMr.SIZE);
        AbiCheck.expect("ibv_mr.pd", domain.nativeAddress(), struct.get(CStruct.PTR, IbvMr.PD));
        this.localKey = struct.get(CStruct.U32, IbvMr.LKEY);
        this.remoteKey = struct.get(CStruct.U32, IbvMr.RKEY);
    }

    static MemoryRegion register(ProtectionDomain domain, MemorySegment segment, Set<AccessFlag> access) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "only native memory can be registered: allocate the segment from an Arena, not from an array");
        }
        if (segment.byteSize() == 0) {
            throw new IllegalArgumentException("an empty segment cannot be registered");
        }
        int mask = AccessFlag.mask(access);
        if ((mask & MODIFYING) != 0 && (mask & AccessFlag.LOCAL_WRITE.value()) == 0) {
            throw new IllegalArgumentException(
                    access + " lacks LOCAL_WRITE, which REMOTE_WRITE and REMOTE_ATOMIC need");
        }
        if (segment.isReadOnly() && (mask & AccessFlag.LOCAL_WRITE.value()) != 0) {
            throw new IllegalArgumentException("a read-only segment cannot be registered with LOCAL_WRITE");
        }
        VerbsObject.hold(domain);
        try {
            String arguments = "length=" + segment.byteSize() + ", access=" + access;
            // As the header's macro: the newer function takes the optional flags, and masks them where the kernel is
            // too old.
            long mr = (mask & OPTIONAL_FLAGS) == 0
                    ? Calls.create(
                            "ibv_reg_mr",
                            arguments,
                            errno -> LibIbverbs.regMr(
                                    errno, domain.nativeAddress(), segment.address(), segment.byteSize(), mask))
                    : Calls.create(
                            "ibv_reg_mr_iova2",
                            arguments,
                            errno -> LibIbverbs.regMrIova2(
                                    errno,
                                    domain.nativeAddress(),
                                    segment.address(),
                                    segment.byteSize(),
                                    segment.address(),
                                    mask));
            return new MemoryRegion(mr, domain, segment, access);
        } finally {
            VerbsObject.release(domain);
        }
    }

    /** {@code IBV_ACCESS_OPTIONAL_RANGE}: flags that a device may ignore. */
    private static final int OPTIONAL_FLAGS = 0x3ff00000;

    /**
     * Where it is registered.
     *
     * @return the domain
     */
    public ProtectionDomain domain() {
        return domain;
    }

    /**
     * The memory.
     *
     * @return what was registered
     */
    public MemorySegment segment() {
        return segment;
    }

    /**
     * What may be done with it.
     *
     * @return as registered
     */
    public Set<AccessFlag> access() {
        return access;
    }

    /**
     * What may be done with it.
     *
     * @return C's bits
     */
    int accessMask() {
        return accessMask;
    }

    /**
     * Where it begins.
     *
     * @return its virtual address: what a peer counts remote addresses from
     */
    public long address() {
        return address;
    }

    /**
     * How long it is.
     *
     * @return bytes
     */
    public long lengthBytes() {
        return lengthBytes;
    }

    /**
     * The key that work requests of this side name it by.
     *
     * @return lkey
     */
    public int localKey() {
        return localKey;
    }

    /**
     * The key that the peer names it by.
     *
     * @return rkey; of use to the peer only with a remote right
     */
    public int remoteKey() {
        return remoteKey;
    }

    @Override
    void destroy(long closing) {
        Calls.check("ibv_dereg_mr", toString(), LibIbverbs.deregMr(closing));
    }

    @Override
    public String toString() {
        return "MemoryRegion of " + lengthBytes + " bytes, lkey 0x" + Integer.toHexString(localKey);
    }
}
