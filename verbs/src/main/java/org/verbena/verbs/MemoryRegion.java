package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvMr;
import org.verbena.verbs.ffm.IbvSge;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.AdviceKind;

/**
 * Memory that is registered with a device. Keep it open, and the segment's arena alive, until every work request that
 * uses it has completed: the device writes to the pages even if the JVM has freed them.
 *
 * <p>Source: ibv_reg_mr(3)
 */
public final class MemoryRegion extends VerbsObject {
    private static final int MODIFYING = AccessFlag.REMOTE_WRITE.value() | AccessFlag.REMOTE_ATOMIC.value();

    /** {@code IBV_ACCESS_OPTIONAL_RANGE}: flags that a device may ignore. */
    private static final int OPTIONAL_FLAGS = 0x3ff00000;

    /** {@code IBV_REREG_MR_*}. */
    private static final int CHANGE_TRANSLATION = 1;

    private static final int CHANGE_ACCESS = 1 << 2;

    private final ProtectionDomain domain;
    private final boolean imported;

    /** What changes when it is registered again; one thread does that while no thread posts. */
    private @Nullable MemorySegment segment;

    private Set<AccessFlag> access;
    private int accessMask;
    private long address;
    private long lengthBytes;
    private int localKey;
    private int remoteKey;

    private MemoryRegion(
            long ibvMr,
            ProtectionDomain domain,
            VerbsObject @Nullable [] parents,
            @Nullable MemorySegment segment,
            Set<AccessFlag> access,
            long address,
            long lengthBytes,
            boolean imported) {
        super(ibvMr, parents == null ? new VerbsObject[] {domain} : parents);
        this.domain = domain;
        this.segment = segment;
        this.access = Set.copyOf(access);
        this.accessMask = NativeConstant.mask(access);
        this.address = access.contains(AccessFlag.ZERO_BASED) ? 0 : address;
        this.lengthBytes = lengthBytes;
        this.imported = imported;
        MemorySegment struct = Pointers.view(ibvMr, IbvMr.SIZE);
        AbiCheck.expect("ibv_mr.pd", domain.nativeAddress(), struct.get(CStruct.PTR, IbvMr.PD));
        this.localKey = struct.get(CStruct.U32, IbvMr.LKEY);
        this.remoteKey = struct.get(CStruct.U32, IbvMr.RKEY);
    }

    static MemoryRegion register(ProtectionDomain domain, MemorySegment segment, Set<AccessFlag> access) {
        int mask = checkRegistration(segment, access);
        return make(domain, arena -> {
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
            return own(
                    mr,
                    made -> new MemoryRegion(
                            made, domain, null, segment, access, segment.address(), segment.byteSize(), false),
                    LibIbverbs::deregMr);
        });
    }

    static MemoryRegion registerAt(
            ProtectionDomain domain, MemorySegment segment, long address, Set<AccessFlag> access) {
        int mask = checkRegistration(segment, access);
        return make(domain, arena -> {
            String arguments =
                    "length=" + segment.byteSize() + ", iova=0x" + Long.toHexString(address) + ", access=" + access;
            long mr = (mask & OPTIONAL_FLAGS) == 0
                    ? Calls.create(
                            "ibv_reg_mr_iova",
                            arguments,
                            errno -> LibIbverbs.regMrIova(
                                    errno,
                                    domain.nativeAddress(),
                                    segment.address(),
                                    segment.byteSize(),
                                    address,
                                    mask))
                    : Calls.create(
                            "ibv_reg_mr_iova2",
                            arguments,
                            errno -> LibIbverbs.regMrIova2(
                                    errno,
                                    domain.nativeAddress(),
                                    segment.address(),
                                    segment.byteSize(),
                                    address,
                                    mask));
            return own(
                    mr,
                    made -> new MemoryRegion(made, domain, null, segment, access, address, segment.byteSize(), false),
                    LibIbverbs::deregMr);
        });
    }

    static MemoryRegion registerAddressSpace(ProtectionDomain domain, Set<AccessFlag> access) {
        EnumSet<AccessFlag> rights = EnumSet.of(AccessFlag.ON_DEMAND);
        rights.addAll(access);
        int mask = NativeConstant.mask(rights);
        requireLocalWrite(mask, rights);
        return make(domain, arena -> {
            String arguments = "the address space, access=" + rights;
            long mr = (mask & OPTIONAL_FLAGS) == 0
                    ? Calls.create(
                            "ibv_reg_mr",
                            arguments,
                            errno -> LibIbverbs.regMr(errno, domain.nativeAddress(), 0, ALL, mask))
                    : Calls.create(
                            "ibv_reg_mr_iova2",
                            arguments,
                            errno -> LibIbverbs.regMrIova2(errno, domain.nativeAddress(), 0, ALL, 0, mask));
            return own(
                    mr,
                    made -> new MemoryRegion(made, domain, null, null, rights, 0, Long.MAX_VALUE, false),
                    LibIbverbs::deregMr);
        });
    }

    /** {@code SIZE_MAX}: with a null address, the length of the address space. */
    private static final long ALL = -1;

    static MemoryRegion registerDmaBuf(
            ProtectionDomain domain, int fd, long offsetBytes, long lengthBytes, long address, Set<AccessFlag> access) {
        return make(domain, arena -> {
            long mr = Calls.create(
                    "ibv_reg_dmabuf_mr",
                    "fd=" + fd + ", offset=" + offsetBytes + ", length=" + lengthBytes + ", access=" + access,
                    errno -> LibIbverbs.regDmabufMr(
                            errno,
                            domain.nativeAddress(),
                            offsetBytes,
                            lengthBytes,
                            address,
                            fd,
                            NativeConstant.mask(access)));
            return own(
                    mr,
                    made -> new MemoryRegion(made, domain, null, null, access, address, lengthBytes, false),
                    LibIbverbs::deregMr);
        });
    }

    static MemoryRegion registerDeviceMemory(
            ProtectionDomain domain, DeviceMemory memory, long offsetBytes, long lengthBytes, Set<AccessFlag> access) {
        VerbsObject[] parents = {domain, memory};
        return make(parents, arena -> {
            MemorySegment function = domain.context().extendedOperation("ibv_reg_dm_mr", VerbsContext.REG_DM_MR);
            long mr = Calls.create(
                    "ibv_reg_dm_mr",
                    "offset=" + offsetBytes + ", length=" + lengthBytes + ", access=" + access,
                    errno -> VerbsOps.regDmMr(
                            function,
                            errno,
                            domain.nativeAddress(),
                            memory.nativeAddress(),
                            offsetBytes,
                            lengthBytes,
                            NativeConstant.mask(access)));
            return own(
                    mr,
                    made -> new MemoryRegion(made, domain, parents, null, access, 0, lengthBytes, false),
                    LibIbverbs::deregMr);
        });
    }

    static MemoryRegion allocateNull(ProtectionDomain domain) {
        return make(domain, arena -> {
            MemorySegment function =
                    domain.context().extendedOperation("ibv_alloc_null_mr", VerbsContext.ALLOC_NULL_MR);
            long mr = Calls.create(
                    "ibv_alloc_null_mr", "", errno -> VerbsOps.allocNullMr(function, errno, domain.nativeAddress()));
            return own(
                    mr,
                    made -> new MemoryRegion(
                            made, domain, null, null, Set.of(AccessFlag.LOCAL_WRITE), 0, Long.MAX_VALUE, false),
                    LibIbverbs::deregMr);
        });
    }

    static MemoryRegion importFrom(
            ProtectionDomain domain, int handle, long address, long lengthBytes, Set<AccessFlag> access) {
        return make(domain, arena -> {
            long mr = Calls.create(
                    "ibv_import_mr",
                    "handle=" + handle,
                    errno -> LibIbverbs.importMr(errno, domain.nativeAddress(), handle));
            return own(
                    mr,
                    made -> new MemoryRegion(made, domain, null, null, access, address, lengthBytes, true),
                    LibIbverbs::unimportMr);
        });
    }

    private static int checkRegistration(MemorySegment segment, Set<AccessFlag> access) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "only native memory can be registered: allocate the segment from an Arena, not from an array");
        }
        if (segment.byteSize() == 0) {
            throw new IllegalArgumentException("an empty segment cannot be registered");
        }
        int mask = NativeConstant.mask(access);
        requireLocalWrite(mask, access);
        if (segment.isReadOnly() && (mask & AccessFlag.LOCAL_WRITE.value()) != 0) {
            throw new IllegalArgumentException("a read-only segment cannot be registered with LOCAL_WRITE");
        }
        return mask;
    }

    private static void requireLocalWrite(int mask, Set<AccessFlag> access) {
        if ((mask & MODIFYING) != 0 && (mask & AccessFlag.LOCAL_WRITE.value()) == 0) {
            throw new IllegalArgumentException(
                    access + " lacks LOCAL_WRITE, which REMOTE_WRITE and REMOTE_ATOMIC need");
        }
    }

    /**
     * Registers other memory, with other rights, under this object; the keys may change. Nothing posted may use the
     * region meanwhile.
     *
     * @param other native memory
     * @param rights the rights of the region
     * @throws VerbsException the device refused; if the message says so the old registration is lost and the region can
     *     only be closed
     */
    public void reregister(MemorySegment other, Set<AccessFlag> rights) {
        int mask = checkRegistration(other, rights);
        runWhileOpen(arena -> {
            MemorySegment errno = Errno.newCapture(arena);
            long mr = nativeAddress();
            int result = LibIbverbs.reregMr(
                    errno, mr, CHANGE_TRANSLATION | CHANGE_ACCESS, 0, other.address(), other.byteSize(), mask);
            if (result != 0) {
                String damage = switch (result) {
                    case -1, -2 -> "the old registration is still good";
                    case -3 -> "the new registration is good, but children forked earlier may lose the old memory";
                    default -> "the region is lost: close it";
                };
                throw new VerbsException(
                        "ibv_rereg_mr(length=" + other.byteSize() + ", access=" + rights + ")",
                        Errno.get(errno),
                        damage + withSpace(Failures.hint("ibv_rereg_mr", Errno.get(errno))));
            }
            segment = other;
            access = Set.copyOf(rights);
            accessMask = mask;
            address = other.address();
            lengthBytes = other.byteSize();
            MemorySegment struct = Pointers.view(mr, IbvMr.SIZE);
            localKey = struct.get(CStruct.U32, IbvMr.LKEY);
            remoteKey = struct.get(CStruct.U32, IbvMr.RKEY);
        });
    }

    private static String withSpace(String hint) {
        return hint.isEmpty() ? hint : "; " + hint;
    }

    /**
     * Announces the intended use of a part of it, if it is registered ON_DEMAND.
     *
     * @param kind the intended use
     * @param wait whether to return only when it is done
     * @param offsetBytes where the part begins
     * @param sgeBytes how long it is
     * @throws VerbsException the device refused, or does not support it
     */
    public void advise(AdviceKind kind, boolean wait, long offsetBytes, int sgeBytes) {
        Objects.checkFromIndexSize(offsetBytes, sgeBytes, lengthBytes);
        runWhileOpen(arena -> {
            MemorySegment function = domain.context().extendedOperation("ibv_advise_mr", VerbsContext.ADVISE_MR);
            MemorySegment sge = arena.allocate(IbvSge.LAYOUT);
            sge.set(CStruct.U64, IbvSge.ADDR, address + offsetBytes);
            sge.set(CStruct.U32, IbvSge.LENGTH, sgeBytes);
            sge.set(CStruct.U32, IbvSge.LKEY, localKey);
            Calls.check(
                    "ibv_advise_mr",
                    kind + ", offset=" + offsetBytes + ", length=" + sgeBytes,
                    VerbsOps.adviseMr(
                            function, domain.nativeAddress(), kind.value(), wait ? ADVISE_FLUSH : 0, sge.address(), 1));
        });
    }

    /** {@code IBV_ADVISE_MR_FLAG_FLUSH}. */
    private static final int ADVISE_FLUSH = 1;

    /**
     * The handle with which another process that shares the device can {@link ProtectionDomain#importMemory import} it.
     *
     * @return the handle
     */
    public int handle() {
        return whileOpen(arena -> Pointers.readInt(nativeAddress() + IbvMr.HANDLE));
    }

    /**
     * Its protection domain.
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
     * @throws IllegalStateException it is not a contiguous part of this process's memory: device memory, a DMA buffer,
     *     imported, null, or all
     */
    public MemorySegment segment() {
        MemorySegment memory = segment;
        if (memory == null) {
            throw new IllegalStateException("the " + this + " is not a contiguous part of this process's memory");
        }
        return memory;
    }

    /**
     * The rights of the region.
     *
     * @return as registered
     */
    public Set<AccessFlag> access() {
        return access;
    }

    /**
     * The rights of the region.
     *
     * @return C's bits
     */
    int accessMask() {
        return accessMask;
    }

    /**
     * Its start address.
     *
     * @return what addresses in it count from, here and at the peer: its virtual address unless registered otherwise
     */
    public long address() {
        return address;
    }

    /**
     * Its length.
     *
     * @return bytes
     */
    public long lengthBytes() {
        return lengthBytes;
    }

    /**
     * The key by which work requests of this side name it.
     *
     * @return lkey
     */
    public int localKey() {
        return localKey;
    }

    /**
     * The key by which the peer names it.
     *
     * @return rkey; of use to the peer only with a remote right
     */
    public int remoteKey() {
        return remoteKey;
    }

    private boolean isAddressSpace() {
        return lengthBytes == Long.MAX_VALUE && access.contains(AccessFlag.ON_DEMAND);
    }

    @Override
    protected void destroy(long closing) {
        if (imported) {
            LibIbverbs.unimportMr(closing);
            return;
        }
        Calls.check("ibv_dereg_mr", toString(), LibIbverbs.deregMr(closing));
    }

    @Override
    public String toString() {
        String extent = isAddressSpace() ? "the address space" : lengthBytes + " bytes";
        return "MemoryRegion of " + extent + ", lkey 0x" + Integer.toHexString(localKey);
    }
}
