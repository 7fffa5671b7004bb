package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.Set;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvContextOps;
import org.verbena.verbs.ffm.IbvMw;
import org.verbena.verbs.ffm.IbvMwBind;
import org.verbena.verbs.ffm.IbvMwBindInfo;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsOps;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.work.SendFlags;

/**
 * A window into a memory region, with a key of its own that can be taken back: the peer gets the window's key instead
 * of the region's.
 *
 * <p>Type 1 is bound with {@link #bind}, type 2 with {@link SendQueue#bindWindow}; the region must be registered with
 * MW_BIND. A bind takes effect when its work request completes.
 *
 * <p>Source: ibv_alloc_mw(3), ibv_bind_mw(3)
 */
public final class MemoryWindow extends VerbsObject {
    private final ProtectionDomain domain;
    private final WindowType type;

    private MemoryWindow(long address, ProtectionDomain domain, WindowType type) {
        super(address, domain);
        this.domain = domain;
        this.type = type;
        AbiCheck.expect("ibv_mw.type", type.value(), Pointers.readInt(address + IbvMw.TYPE));
    }

    static MemoryWindow allocate(ProtectionDomain domain, WindowType type) {
        Context context = domain.context();
        return make(domain, arena -> {
            MemorySegment function = context.requiredInlineOperation("ibv_alloc_mw", IbvContextOps.ALLOC_MW);
            MemorySegment deallocate = context.requiredInlineOperation("ibv_dealloc_mw", IbvContextOps.DEALLOC_MW);
            long mw = Calls.create(
                    "ibv_alloc_mw",
                    type.toString(),
                    errno -> VerbsOps.allocMw(function, errno, domain.nativeAddress(), type.value()));
            return own(
                    mw,
                    made -> new MemoryWindow(made, domain, type),
                    refused -> VerbsOps.deallocMw(deallocate, refused));
        });
    }

    /**
     * The type of the window.
     *
     * @return its type
     */
    public WindowType type() {
        return type;
    }

    /**
     * The key by which the peer names it.
     *
     * @return rkey: of type 1 after {@link #bind}, of type 2 the one it was allocated with, or that of {@link #rebound}
     */
    public int remoteKey() {
        return whileOpen(arena -> Pointers.readInt(nativeAddress() + IbvMw.RKEY));
    }

    /**
     * Notes the key that a type 2 window was bound with. Nothing else does, and drivers want to know it when the window
     * is bound again, after {@link SendQueue#localInvalidate}: libmlx5 names the window by it, and librxe as well.
     *
     * @param key given to {@link SendQueue#bindWindow} in a work request that the device has taken
     */
    public void rebound(int key) {
        whileOpen(arena -> {
            Pointers.view(nativeAddress() + IbvMw.RKEY, Integer.BYTES).set(CStruct.U32, 0, key);
            return true;
        });
    }

    /**
     * The key to bind a type 2 window with next: the low byte is the caller's, and should change with each bind.
     *
     * @param remoteKey the key it was bound with last, or allocated with
     * @return the same with the low byte one higher
     */
    public static int nextKey(int remoteKey) {
        return (remoteKey & ~0xff) | ((remoteKey + 1) & 0xff);
    }

    /**
     * Binds a type 1 window with a work request that is posted immediately, behind those flushed before.
     *
     * @param queuePair whose peer will use it
     * @param workRequestId returned in the completion
     * @param sendFlags of {@link SendFlags}
     * @param region what it is a window into
     * @param offsetBytes where it begins
     * @param lengthBytes how long it is; 0 unbinds it
     * @param access what the peer may do
     * @throws VerbsException the device refused
     */
    public void bind(
            QueuePair queuePair,
            long workRequestId,
            int sendFlags,
            MemoryRegion region,
            long offsetBytes,
            long lengthBytes,
            Set<AccessFlag> access) {
        if (type != WindowType.TYPE_1) {
            throw new IllegalStateException("only type 1 windows are bound like this; see SendQueue.bindWindow");
        }
        checkBinding(region, offsetBytes, lengthBytes);
        queuePair.sendQueue(); // refuses where there is none to bind by
        domain.context().checkOwns(queuePair, queuePair.domain().context(), this);
        MemorySegment function = domain.context().requiredInlineOperation("ibv_bind_mw", IbvContextOps.BIND_MW);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bind = arena.allocate(IbvMwBind.LAYOUT);
            bind.set(CStruct.U64, IbvMwBind.WR_ID, workRequestId);
            bind.set(CStruct.U32, IbvMwBind.SEND_FLAGS, sendFlags);
            writeBinding(bind, IbvMwBind.BIND_INFO, region, offsetBytes, lengthBytes, access);
            Calls.check(
                    "ibv_bind_mw",
                    toString(),
                    VerbsOps.bindMw(function, queuePair.nativeAddress(), nativeAddress(), bind.address()));
        }
    }

    /**
     * Checks what a window shall be bound to.
     *
     * @param region what it is a window into
     * @param offsetBytes where it begins
     * @param lengthBytes how long it is
     */
    void checkBinding(MemoryRegion region, long offsetBytes, long lengthBytes) {
        Objects.checkFromIndexSize(offsetBytes, lengthBytes, region.lengthBytes());
        if (!region.domain().sharesMemoryWith(domain)) {
            throw new IllegalArgumentException(
                    "the " + region + " is registered in another protection domain than " + this);
        }
        if (!region.access().contains(AccessFlag.MW_BIND)) {
            throw new IllegalArgumentException("the " + region + " is registered without MW_BIND");
        }
    }

    /**
     * Writes an {@code ibv_mw_bind_info}.
     *
     * @param struct what it is in
     * @param offset where
     * @param region what it is a window into
     * @param offsetBytes where it begins
     * @param lengthBytes how long it is
     * @param access what the peer may do
     */
    static void writeBinding(
            MemorySegment struct,
            long offset,
            MemoryRegion region,
            long offsetBytes,
            long lengthBytes,
            Set<AccessFlag> access) {
        struct.set(CStruct.PTR, offset + IbvMwBindInfo.MR, region.nativeAddress());
        struct.set(CStruct.U64, offset + IbvMwBindInfo.ADDR, region.address() + offsetBytes);
        struct.set(CStruct.U64, offset + IbvMwBindInfo.LENGTH, lengthBytes);
        struct.set(CStruct.U32, offset + IbvMwBindInfo.MW_ACCESS_FLAGS, NativeConstant.mask(access));
    }

    @Override
    protected void destroy(long closing) {
        MemorySegment function = domain.context().inlineOperation(IbvContextOps.DEALLOC_MW);
        Calls.check(
                "ibv_dealloc_mw",
                toString(),
                function.address() == 0 ? Errno.EOPNOTSUPP : VerbsOps.deallocMw(function, closing));
    }

    @Override
    public String toString() {
        return "MemoryWindow of " + type + " on " + domain.context().device().name();
    }
}
