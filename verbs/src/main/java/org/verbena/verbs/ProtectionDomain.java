package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.ffm.IbvPd;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;

/**
 * Ties memory to queue pairs: a queue pair can use only the memory regions of its own domain. Any thread.
 *
 * <p>Source: ibv_alloc_pd(3)
 */
public final class ProtectionDomain extends VerbsObject {
    private final Context context;

    /** The domain that memory is registered in; itself unless this is a parent domain. */
    private final @Nullable ProtectionDomain inner;

    private final LongConsumer destroyer;

    ProtectionDomain(long address, Context context, LongConsumer destroyer) {
        super(address, context);
        this.context = context;
        this.inner = null;
        this.destroyer = destroyer;
        AbiCheck.expect("ibv_pd.context", context.nativeAddress(), Pointers.readLong(address + IbvPd.CONTEXT));
    }

    /** A parent domain. */
    ProtectionDomain(long address, Context context, ProtectionDomain inner, VerbsObject[] parents) {
        super(address, parents);
        this.context = context;
        this.inner = inner;
        this.destroyer = owned -> Calls.check("ibv_dealloc_pd", context.device().name(), LibIbverbs.deallocPd(owned));
        AbiCheck.expect("ibv_pd.context", context.nativeAddress(), Pointers.readLong(address + IbvPd.CONTEXT));
    }

    /**
     * Takes a domain that another library allocated, such as librdmacm's {@code cm_id->pd}. Closing it here leaves it
     * allocated there.
     *
     * @param context its context
     * @param ibvPd address of an {@code ibv_pd}; it stays valid until this is closed
     * @return the domain
     */
    public static ProtectionDomain wrap(Context context, long ibvPd) {
        return make(context, arena -> {
            return own(ibvPd, foreign -> new ProtectionDomain(foreign, context, closed -> {}), refused -> {});
        });
    }

    /**
     * The context that it belongs to.
     *
     * @return the context
     */
    public Context context() {
        return context;
    }

    /**
     * Whether memory registered in one of two domains can be used by queue pairs of the other: they are the same C
     * object, wrapped twice, or one is the other's parent domain.
     *
     * @param other a domain
     * @return true if so
     */
    boolean sharesMemoryWith(ProtectionDomain other) {
        return memoryDomain().nativeAddress() == other.memoryDomain().nativeAddress();
    }

    private ProtectionDomain memoryDomain() {
        ProtectionDomain registered = inner;
        return registered == null ? this : registered.memoryDomain();
    }

    /**
     * The handle with which another process that shares the device can {@link Context#importProtectionDomain import}
     * it.
     *
     * @return the handle
     */
    public int handle() {
        return whileOpen(arena -> Pointers.readInt(nativeAddress() + IbvPd.HANDLE));
    }

    /**
     * Registers memory with the device. The pages are pinned as long as the region is open, so register large segments
     * and keep them.
     *
     * @param segment native memory; it must stay alive until the region is closed; keep the region open while a work
     *     request uses it
     * @param access the rights of the region; local reads are always allowed
     * @return the region; the caller closes it
     * @throws IllegalArgumentException heap memory, an empty segment, or REMOTE_WRITE or REMOTE_ATOMIC without
     *     LOCAL_WRITE
     * @throws VerbsException the device refused; ENOMEM and EPERM mean the locked-memory limit
     */
    public MemoryRegion registerMemory(MemorySegment segment, Set<AccessFlag> access) {
        return MemoryRegion.register(this, segment, access);
    }

    /**
     * Registers memory with the device under addresses of the caller's choice.
     *
     * @param segment native memory, as for {@link #registerMemory}
     * @param address what addresses in the region count from, here and at the peer; at the same offset in a page as the
     *     segment
     * @param access the rights of the region
     * @return the region; the caller closes it
     * @throws IllegalArgumentException as for {@link #registerMemory}
     * @throws VerbsException the device refused
     */
    public MemoryRegion registerMemoryAt(MemorySegment segment, long address, Set<AccessFlag> access) {
        return MemoryRegion.registerAt(this, segment, address, access);
    }

    /**
     * Registers all memory of this process with the device, including what is allocated later: implicit on-demand
     * paging. The offset of a piece of it is the {@link MemorySegment#address()}. Nothing is pinned; do not free memory
     * that posted work uses.
     *
     * @param access the rights of the region besides on-demand paging
     * @return the region; the caller closes it
     * @throws VerbsException the device refused, or {@link ExtendedDeviceAttributes#hasImplicitOnDemandPaging() cannot}
     */
    public MemoryRegion registerAddressSpace(Set<AccessFlag> access) {
        return MemoryRegion.registerAddressSpace(this, access);
    }

    /**
     * Registers a DMA buffer with the device, for example memory of a GPU.
     *
     * @param fd the buffer's descriptor
     * @param offsetBytes where in the buffer the region begins
     * @param lengthBytes how long it is
     * @param address what addresses in the region count from; at the same offset in a page as {@code offsetBytes}
     * @param access the rights of the region
     * @return the region; the caller closes it
     * @throws VerbsException the device refused, or does not support it
     */
    public MemoryRegion registerDmaBuffer(
            int fd, long offsetBytes, long lengthBytes, long address, Set<AccessFlag> access) {
        return MemoryRegion.registerDmaBuf(this, fd, offsetBytes, lengthBytes, address, access);
    }

    /**
     * Registers a part of the device's own memory for work requests. Its addresses start at 0.
     *
     * @param memory the device's memory
     * @param offsetBytes where the part begins
     * @param lengthBytes how long it is
     * @param access the rights of the region, including ZERO_BASED
     * @return the region; the caller closes it before the memory
     * @throws VerbsException the device refused, or does not support it
     */
    public MemoryRegion registerDeviceMemory(
            DeviceMemory memory, long offsetBytes, long lengthBytes, Set<AccessFlag> access) {
        return MemoryRegion.registerDeviceMemory(this, memory, offsetBytes, lengthBytes, access);
    }

    /**
     * Registers a null region, which discards what is received into it.
     *
     * @return the region; the caller closes it
     * @throws VerbsException the device cannot
     */
    public MemoryRegion allocateNullRegion() {
        return MemoryRegion.allocateNull(this);
    }

    /**
     * Takes a memory region of the process that this domain was imported from.
     *
     * @param handle its {@link MemoryRegion#handle()} there
     * @param address what addresses in it count from, there
     * @param lengthBytes how long it is
     * @param access what it was registered with
     * @return the region; closing it leaves it to the other process
     * @throws VerbsException there is no such region, or the provider cannot share
     */
    public MemoryRegion importMemory(int handle, long address, long lengthBytes, Set<AccessFlag> access) {
        return MemoryRegion.importFrom(this, handle, address, lengthBytes, access);
    }

    /**
     * Allocates a memory window, not yet bound to anything.
     *
     * @param type how it will be bound
     * @return the window; the caller closes it
     * @throws VerbsException the device has no such windows
     */
    public MemoryWindow allocateMemoryWindow(WindowType type) {
        return MemoryWindow.allocate(this, type);
    }

    /**
     * Creates an address handle for datagrams.
     *
     * @param address where they go
     * @return the handle; the caller closes it
     * @throws VerbsException the address does not resolve, or the device refused
     */
    public AddressHandle createAddressHandle(AddressVector address) {
        return AddressHandle.create(this, address);
    }

    /**
     * Creates an address handle for answering a datagram.
     *
     * @param port the port it came to
     * @param completions where its completion is
     * @param index of it
     * @param globalRouteHeader the first 40 bytes of the receive's buffers
     * @return the handle; the caller closes it
     * @throws VerbsException the address does not resolve, or the device refused
     */
    public AddressHandle createAddressHandle(
            int port, WorkCompletions completions, int index, MemorySegment globalRouteHeader) {
        return AddressHandle.createForAnswer(this, port, completions, index, globalRouteHeader);
    }

    /**
     * Creates a queue pair with extended options: for work request builders, XRC, segmentation.
     *
     * @param options its type, queues and sizes
     * @param extension what ibv_create_qp_ex takes besides
     * @return the queue pair in RESET; the caller closes it
     * @throws VerbsException the device refused, or does not support it
     */
    public QueuePair createQueuePair(QueuePairOptions options, QueuePairExtension extension) {
        return QueuePair.createExtended(this, options, extension);
    }

    /**
     * Creates a shared receive queue for XRC: any XRC receive queue pair of the domain serves it, by its number.
     *
     * @param depthWrs receives it holds at least, 1 or more
     * @param maxSges scatter/gather elements in one of them, 1 or more
     * @param domain the XRC domain
     * @param completions where its receives complete
     * @return the queue; the caller closes it
     * @throws VerbsException the device has no XRC, or refused
     */
    public SharedReceiveQueue createXrcSharedReceiveQueue(
            int depthWrs, int maxSges, XrcDomain domain, CompletionQueue completions) {
        return SharedReceiveQueue.createXrc(this, depthWrs, maxSges, domain, completions);
    }

    /**
     * Creates a queue pair.
     *
     * @param options its type, queues and sizes
     * @return the queue pair in RESET; the caller closes it
     * @throws VerbsException the device refused
     */
    public QueuePair createQueuePair(QueuePairOptions options) {
        return QueuePair.create(this, options);
    }

    /**
     * Creates a shared receive queue.
     *
     * @param depthWrs receives it holds at least, 1 or more
     * @param maxSges scatter/gather elements in one of them, 1 or more
     * @return the queue; the caller closes it
     * @throws VerbsException the device refused
     */
    public SharedReceiveQueue createSharedReceiveQueue(int depthWrs, int maxSges) {
        return SharedReceiveQueue.create(this, depthWrs, maxSges);
    }

    @Override
    protected void destroy(long closing) {
        destroyer.accept(closing);
    }

    @Override
    public String toString() {
        return "ProtectionDomain of " + context.device().name();
    }
}
