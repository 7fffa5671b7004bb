package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.DriverFamily;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvAhAttr;
import org.verbena.verbs.ffm.IbvContext;
import org.verbena.verbs.ffm.IbvDeviceAttr;
import org.verbena.verbs.ffm.IbvDeviceAttrEx;
import org.verbena.verbs.ffm.IbvGidEntry;
import org.verbena.verbs.ffm.IbvGrh;
import org.verbena.verbs.ffm.IbvParentDomainInitAttr;
import org.verbena.verbs.ffm.IbvPortAttr;
import org.verbena.verbs.ffm.IbvQpOpenAttr;
import org.verbena.verbs.ffm.IbvValuesEx;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsLibrary;
import org.verbena.verbs.ffm.VerbsOps;
import org.verbena.verbs.queue.CompletionQueueFlag;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionField;

/**
 * An open device. Everything else is created on it and closed before it. Any thread, except {@link
 * #tryGetAsyncEvent()}: one thread at a time. While a call runs on another thread, {@link #close()} refuses, as it does
 * while objects are being created.
 *
 * <p>Source: ibv_open_device(3)
 */
public final class Context extends VerbsObject {
    /** ibv_query_port_speed counts in 100 Mbit/s. */
    private static final double HUNDREDS_OF_MEGABITS_PER_GIGABIT = 10;

    private final Device device;
    private final boolean owned;
    private final int completionVectors;
    private final AsyncEvents events;

    /** Null until a query of the device has succeeded; each thread finds the same. */
    private volatile @Nullable DriverFamily driverFamily;

    Context(long address, Device device, boolean owned) {
        super(address);
        this.device = device;
        this.owned = owned;
        MemorySegment struct = Pointers.view(address, IbvContext.SIZE);
        this.completionVectors = struct.get(CStruct.I32, IbvContext.NUM_COMP_VECTORS);
        this.events = new AsyncEvents(this, struct.get(CStruct.I32, IbvContext.ASYNC_FD));
    }

    /**
     * Takes a context that another library opened, such as librdmacm's {@code cm_id->verbs}. Closing it here leaves it
     * open there; keep one of these per C context, because objects find their parents by it.
     *
     * @param ibvContext address of an {@code ibv_context}; it stays valid until this is closed
     * @return the context
     * @throws UnsupportedOperationException the library has an unknown ABI
     */
    public static Context wrap(long ibvContext) {
        AbiCheck.context(ibvContext, 0);
        long ibvDevice = Pointers.readLong(ibvContext + IbvContext.DEVICE);
        AbiCheck.device(ibvDevice);
        return new Context(ibvContext, Device.read(ibvDevice), false);
    }

    /**
     * The device that was opened.
     *
     * @return the device
     */
    public Device device() {
        return device;
    }

    /**
     * The family of the device's driver, which has the facts that no query returns.
     *
     * @return the family, for good once {@link #queryDevice()} has succeeded; {@link DriverFamily#OTHER} if it is not
     *     known, and for now if the device does not answer
     */
    public DriverFamily driverFamily() {
        DriverFamily known = driverFamily;
        if (known != null) {
            return known;
        }
        try {
            return familyOf(queryDevice());
        } catch (VerbsException refused) {
            return DriverFamily.OTHER;
        }
    }

    private DriverFamily familyOf(DeviceAttributes attributes) {
        DriverFamily known = driverFamily;
        if (known == null) {
            known = DriverFamily.of(device.driverName(), attributes.vendorId());
            driverFamily = known;
        }
        return known;
    }

    /**
     * The number of completion vectors: interrupts, each served by a processor.
     *
     * @return 1 or more; completion queues take their vector modulo this
     */
    public int completionVectors() {
        return completionVectors;
    }

    /**
     * The descriptor that becomes readable when {@link #tryGetAsyncEvent()} has an event.
     *
     * @return a file descriptor, which the context closes
     */
    public int asyncFd() {
        nativeAddress();
        return events.descriptor();
    }

    /**
     * Queries the device's attributes.
     *
     * @return its attributes
     * @throws VerbsException the device refused
     */
    public DeviceAttributes queryDevice() {
        return whileOpen(arena -> {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attr = arena.allocate(IbvDeviceAttr.LAYOUT);
            Calls.check("ibv_query_device", "", LibIbverbs.queryDevice(errno, nativeAddress(), attr.address()), errno);
            DeviceAttributes attributes = DeviceQueries.device(attr);
            familyOf(attributes);
            return attributes;
        });
    }

    /**
     * Queries the state of a port.
     *
     * @param port 1 or more
     * @return its attributes
     * @throws VerbsException there is no such port, or the device refused
     */
    public PortAttributes queryPort(int port) {
        byte number = portNumber(port);
        return whileOpen(arena -> {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attr = arena.allocate(IbvPortAttr.EXTENDED_SIZE, IbvPortAttr.LAYOUT.byteAlignment());
            // As the header's inline does: the function in verbs_context is passed the struct's size, and leaves zero
            // what it does not know; the exported one, for providers without it, knows a shorter struct only.
            long function = operation(VerbsContext.QUERY_PORT);
            int result = function != 0
                    ? VerbsOps.queryPort(
                            Pointers.function(function),
                            nativeAddress(),
                            number,
                            attr.address(),
                            IbvPortAttr.EXTENDED_SIZE)
                    : LibIbverbs.queryPort(errno, nativeAddress(), number, attr.address());
            Calls.check("ibv_query_port", "port=" + port, result, errno);
            return DeviceQueries.port(attr);
        });
    }

    /**
     * The bandwidth of a port: what the device says is effective, as of a bond or a virtual function, if library (from
     * rdma-core 62 on) and kernel ask it for that; otherwise the speed of its link.
     *
     * <p>Source: ibv_query_port_speed(3), ibv_query_port(3)
     *
     * @param port 1 or more
     * @return in Gbit/s; 0 if it is not known
     * @throws VerbsException there is no such port, or the device refused
     */
    public double gigabitsPerSecond(int port) {
        portNumber(port);
        double effective = !VerbsLibrary.has("ibv_query_port_speed")
                ? 0
                : whileOpen(arena -> {
                    MemorySegment speed = arena.allocate(CStruct.U64);
                    // Whatever it fails with, kernels that do not know it or the device: the link says the rest.
                    int result = LibIbverbs.queryPortSpeed(nativeAddress(), port, speed.address());
                    return result == 0 ? speed.get(CStruct.U64, 0) / HUNDREDS_OF_MEGABITS_PER_GIGABIT : 0.0;
                });
        return effective > 0 ? effective : queryPort(port).gigabitsPerSecond();
    }

    /**
     * Reads an entry of a port's GID table.
     *
     * @param port 1 or more
     * @param index 0 or more
     * @return the entry with its RoCE type
     * @throws VerbsException there is no such port or entry (ENODATA: it is empty)
     */
    public GidEntry queryGid(int port, int index) {
        portNumber(port);
        return whileOpen(arena -> {
            MemorySegment entry = arena.allocate(IbvGidEntry.LAYOUT);
            int result = LibIbverbs.queryGidEx(nativeAddress(), port, index, entry.address(), 0, IbvGidEntry.SIZE);
            if (result != 0) {
                throw Failures.failure("ibv_query_gid_ex", "port=" + port + ", index=" + index, Math.abs(result));
            }
            return DeviceQueries.gid(entry);
        });
    }

    /**
     * Reads all entries of all ports' GID tables that are in use.
     *
     * @return the entries
     * @throws VerbsException the device refused
     */
    public List<GidEntry> queryGids() {
        return whileOpen(arena -> {
            int entries = 0;
            int ports = queryDevice().ports();
            for (int port = 1; port <= ports; port++) {
                entries += queryPort(port).gidTableEntries();
            }
            MemorySegment table = arena.allocate(IbvGidEntry.LAYOUT, Math.max(entries, 1));
            long found = LibIbverbs.queryGidTable(nativeAddress(), table.address(), entries, 0, IbvGidEntry.SIZE);
            if (found < 0) {
                throw Failures.failure("ibv_query_gid_table", "entries=" + entries, (int) -found);
            }
            List<GidEntry> gids = new ArrayList<>();
            for (int i = 0; i < found; i++) {
                gids.add(DeviceQueries.gid(table.asSlice(i * IbvGidEntry.SIZE, IbvGidEntry.SIZE)));
            }
            return List.copyOf(gids);
        });
    }

    static Gid readGid(MemorySegment struct, long offset) {
        return new Gid(
                Pointers.bigEndian(struct.get(CStruct.U64, offset)),
                Pointers.bigEndian(struct.get(CStruct.U64, offset + Long.BYTES)));
    }

    static void writeGid(MemorySegment struct, long offset, Gid gid) {
        struct.set(CStruct.U64, offset, Pointers.bigEndian(gid.subnetPrefix()));
        struct.set(CStruct.U64, offset + Long.BYTES, Pointers.bigEndian(gid.interfaceId()));
    }

    /**
     * Reads an entry of a port's P_Key table.
     *
     * @param port 1 or more
     * @param index 0 or more
     * @return the key, 0 to 0xffff; the top bit is full membership
     * @throws VerbsException there is no such port or entry
     */
    public int queryPkey(int port, int index) {
        byte number = portNumber(port);
        return whileOpen(arena -> {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment pkey = arena.allocate(CStruct.U16);
            Calls.check(
                    "ibv_query_pkey",
                    "port=" + port + ", index=" + index,
                    LibIbverbs.queryPkey(errno, nativeAddress(), number, index, pkey.address()),
                    errno);
            return Short.toUnsignedInt(Pointers.bigEndian(pkey.get(CStruct.U16, 0)));
        });
    }

    /**
     * Finds a P_Key in a port's table.
     *
     * @param port 1 or more
     * @param pkey the key, 0 to 0xffff
     * @return its index
     * @throws VerbsException it is not in the table
     */
    public int pkeyIndex(int port, int pkey) {
        byte number = portNumber(port);
        return whileOpen(arena -> {
            MemorySegment errno = Errno.newCapture(arena);
            int index = LibIbverbs.getPkeyIndex(errno, nativeAddress(), number, Pointers.bigEndian((short) pkey));
            if (index < 0) {
                throw new VerbsException(
                        "ibv_get_pkey_index(port=" + port + ", pkey=0x" + Integer.toHexString(pkey) + ")",
                        Errno.ENOENT,
                        "the port's table has no such key; queryPkey lists those it has");
            }
            return index;
        });
    }

    /**
     * Allocates a protection domain.
     *
     * @return the domain; the caller closes it
     * @throws VerbsException the device refused
     */
    public ProtectionDomain allocateProtectionDomain() {
        return make(this, arena -> {
            long pd = Calls.create("ibv_alloc_pd", device.name(), errno -> LibIbverbs.allocPd(errno, nativeAddress()));
            LongConsumer destroyer = owned -> Calls.check("ibv_dealloc_pd", device.name(), LibIbverbs.deallocPd(owned));
            return own(pd, made -> new ProtectionDomain(made, this, destroyer), destroyer);
        });
    }

    /**
     * Queries the device's extended attributes, beyond {@link #queryDevice}.
     *
     * @return its attributes; zero if an older provider does not report one
     * @throws VerbsException the device refused
     */
    public ExtendedDeviceAttributes queryDeviceExtended() {
        return whileOpen(arena -> {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attr = arena.allocate(IbvDeviceAttrEx.LAYOUT);
            long function = operation(VerbsContext.QUERY_DEVICE_EX);
            int result = function == 0
                    ? Errno.EOPNOTSUPP
                    : Math.abs(VerbsOps.queryDeviceEx(
                            Pointers.function(function), nativeAddress(), 0, attr.address(), IbvDeviceAttrEx.SIZE));
            if (result == Errno.EOPNOTSUPP || result == Errno.ENOSYS) {
                // As the header's inline does: what the older call knows, and zero for the rest.
                attr.fill((byte) 0);
                result = LibIbverbs.queryDevice(errno, nativeAddress(), attr.address());
            }
            Calls.check("ibv_query_device_ex", "", result, errno);
            return DeviceQueries.extended(attr);
        });
    }

    /**
     * Reads the device's clock, which completion timestamps use.
     *
     * @return its raw value in nanoseconds or cycles, as the device has it
     * @throws VerbsException the device has none
     */
    public long queryRawClock() {
        return whileOpen(arena -> {
            MemorySegment function = extendedOperation("ibv_query_rt_values_ex", VerbsContext.QUERY_RT_VALUES);
            MemorySegment values = arena.allocate(IbvValuesEx.LAYOUT);
            values.set(CStruct.U32, IbvValuesEx.COMP_MASK, 1);
            Calls.check(
                    "ibv_query_rt_values_ex",
                    "RAW_CLOCK",
                    VerbsOps.queryRtValues(function, nativeAddress(), values.address()));
            return values.get(CStruct.U64, IbvValuesEx.RAW_CLOCK_TV_SEC) * 1_000_000_000L
                    + values.get(CStruct.U64, IbvValuesEx.RAW_CLOCK_TV_NSEC);
        });
    }

    /**
     * Opens a device that another process has open, to share its protection domains and memory.
     *
     * @param commandFd that process's {@link #commandFd()}, passed by a UNIX socket
     * @return the context; the caller closes it
     * @throws VerbsException the descriptor is no device's, or the provider cannot share
     */
    public static Context importDevice(int commandFd) {
        long context = Calls.create(
                "ibv_import_device", "cmd_fd=" + commandFd, errno -> LibIbverbs.importDevice(errno, commandFd));
        return own(
                context,
                made -> {
                    AbiCheck.context(made, 0);
                    return new Context(made, Device.read(Pointers.readLong(made + IbvContext.DEVICE)), true);
                },
                Context::closeDevice);
    }

    /** Closes a context that could not be wrapped. */
    static void closeDevice(long context) {
        try (Arena arena = Arena.ofConfined()) {
            LibIbverbs.closeDevice(Errno.newCapture(arena), context);
        }
    }

    /**
     * The descriptor that another process needs to {@link #importDevice import} the device.
     *
     * @return a file descriptor, which the context closes
     */
    public int commandFd() {
        return whileOpen(arena -> Pointers.readInt(nativeAddress() + IbvContext.CMD_FD));
    }

    /**
     * Takes a protection domain of the process that the device was {@link #importDevice imported} from.
     *
     * @param handle its {@link ProtectionDomain#handle()} there
     * @return the domain; closing it leaves it to the other process
     * @throws VerbsException there is no such domain, or the provider cannot share
     */
    public ProtectionDomain importProtectionDomain(int handle) {
        return make(this, arena -> {
            long pd = Calls.create(
                    "ibv_import_pd", "handle=" + handle, errno -> LibIbverbs.importPd(errno, nativeAddress(), handle));
            return own(pd, made -> new ProtectionDomain(made, this, LibIbverbs::unimportPd), LibIbverbs::unimportPd);
        });
    }

    /**
     * Allocates memory on the device.
     *
     * @param lengthBytes how much, 1 or more
     * @param alignmentLog2 the power of two that it is aligned to, 0 or more: 12 is 4,096 bytes
     * @return the memory; the caller closes it
     * @throws VerbsException the device has none, or not so much
     */
    public DeviceMemory allocateDeviceMemory(long lengthBytes, int alignmentLog2) {
        return DeviceMemory.allocate(this, lengthBytes, alignmentLog2);
    }

    /**
     * Takes device memory of the process that the device was {@link #importDevice imported} from.
     *
     * @param handle its {@link DeviceMemory#handle()} there
     * @param lengthBytes how much it is
     * @return the memory; closing it leaves it to the other process
     * @throws VerbsException there is no such memory, or the provider cannot share
     */
    public DeviceMemory importDeviceMemory(int handle, long lengthBytes) {
        return DeviceMemory.importFrom(this, handle, lengthBytes);
    }

    /**
     * Opens an XRC domain that only this process uses.
     *
     * @return the domain; the caller closes it
     * @throws VerbsException the device has no XRC
     */
    public XrcDomain openXrcDomain() {
        return XrcDomain.open(this, -1, XrcDomain.O_CREAT);
    }

    /**
     * Opens the XRC domain of all processes that open it with the same file; the first of them creates it.
     *
     * @param file the file; if there is none, an empty one is made, readable for its owner and group
     * @return the domain; the caller closes it
     * @throws VerbsException the device has no XRC, or the file cannot be opened
     */
    public XrcDomain openXrcDomain(Path file) {
        return XrcDomain.open(this, file);
    }

    /**
     * Opens the XRC domain of all processes that open it with the same file.
     *
     * @param fd a descriptor of the file
     * @param create whether to make the domain if the file has none yet
     * @param exclusive whether to fail if it has one already
     * @return the domain; the caller closes it
     * @throws VerbsException the device has no XRC, or there is no such domain
     */
    public XrcDomain openXrcDomain(int fd, boolean create, boolean exclusive) {
        return XrcDomain.open(this, fd, (create ? XrcDomain.O_CREAT : 0) | (exclusive ? XrcDomain.O_EXCL : 0));
    }

    /**
     * Creates a thread domain: objects created on it are used by one thread at a time, so that a provider can omit
     * locks.
     *
     * @return the thread domain; the caller closes it
     * @throws VerbsException the provider does not support it
     */
    public ThreadDomain allocateThreadDomain() {
        return ThreadDomain.allocate(this);
    }

    /**
     * Combines a protection domain and a thread domain.
     *
     * @param domain where memory is registered
     * @param threads the thread domain of what is created on it; null for any thread
     * @return a protection domain to create queues on; the caller closes it before the two
     * @throws VerbsException the provider does not support it
     */
    public ProtectionDomain allocateParentDomain(ProtectionDomain domain, @Nullable ThreadDomain threads) {
        VerbsObject[] parents =
                threads == null ? new VerbsObject[] {this, domain} : new VerbsObject[] {this, domain, threads};
        return make(parents, arena -> {
            MemorySegment function = extendedOperation("ibv_alloc_parent_domain", VerbsContext.ALLOC_PARENT_DOMAIN);
            MemorySegment attr = arena.allocate(IbvParentDomainInitAttr.LAYOUT);
            attr.set(CStruct.PTR, IbvParentDomainInitAttr.PD, domain.nativeAddress());
            attr.set(CStruct.PTR, IbvParentDomainInitAttr.TD, threads == null ? 0 : threads.nativeAddress());
            long pd = Calls.create(
                    "ibv_alloc_parent_domain",
                    device.name(),
                    errno -> VerbsOps.allocParentDomain(function, errno, nativeAddress(), attr.address()));
            return own(pd, made -> new ProtectionDomain(made, this, domain, parents), LibIbverbs::deallocPd);
        });
    }

    /**
     * Creates a completion queue whose completions are read field by field.
     *
     * @param entries how many completions it holds at least, 1 or more
     * @param channel receives its events, or null
     * @param completionVector which of {@link #completionVectors()} is used, modulo their number
     * @param fields what the reader returns besides id, status, opcode, vendor error and flags
     * @return the queue, whose {@link CompletionQueue#reader()} takes completions; the caller closes it
     * @throws VerbsException the device does not report one of the fields, or refused
     */
    public CompletionQueue createExtendedCompletionQueue(
            int entries, @Nullable CompletionChannel channel, int completionVector, Set<CompletionField> fields) {
        return createExtendedCompletionQueue(entries, channel, completionVector, fields, Set.of());
    }

    /**
     * Creates a completion queue whose completions are read field by field, in a special way.
     *
     * @param entries how many completions it holds at least, 1 or more
     * @param channel receives its events, or null
     * @param completionVector which of {@link #completionVectors()} is used, modulo their number
     * @param fields what the reader returns besides id, status, opcode, vendor error and flags
     * @param flags any; the library does not check what they promise
     * @return the queue, whose {@link CompletionQueue#reader()} takes completions; the caller closes it
     * @throws VerbsException the device does not report one of the fields, does not know one of the flags, or refused
     */
    public CompletionQueue createExtendedCompletionQueue(
            int entries,
            @Nullable CompletionChannel channel,
            int completionVector,
            Set<CompletionField> fields,
            Set<CompletionQueueFlag> flags) {
        return CompletionQueue.createExtended(this, entries, channel, completionVector, fields, flags);
    }

    /**
     * Determines the address of a datagram's sender.
     *
     * @param port the port it came to
     * @param completions where its completion is
     * @param index of it
     * @param globalRouteHeader the first 40 bytes of the receive's buffers; read only if the completion says that there
     *     is one
     * @return the address, for an address handle
     * @throws VerbsException the device refused
     */
    public AddressVector addressOfSender(
            int port, WorkCompletions completions, int index, MemorySegment globalRouteHeader) {
        byte number = portNumber(port);
        return whileOpen(arena -> {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment grh = arena.allocate(IbvGrh.LAYOUT);
            MemorySegment.copy(globalRouteHeader, 0, grh, 0, IbvGrh.SIZE);
            MemorySegment attr = arena.allocate(IbvAhAttr.LAYOUT);
            Calls.check(
                    "ibv_init_ah_from_wc",
                    "port=" + port,
                    LibIbverbs.initAhFromWc(
                            errno,
                            nativeAddress(),
                            number,
                            completions.addressOf(index),
                            grh.address(),
                            attr.address()),
                    errno);
            return AddressVector.read(attr, 0);
        });
    }

    /**
     * Resolves the Ethernet address behind a RoCE address.
     *
     * @param address of a peer, with a route
     * @return its MAC address and VLAN
     * @throws VerbsException it cannot be resolved
     */
    public EthernetAddress resolveEthernet(AddressVector address) {
        return whileOpen(arena -> {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attr = arena.allocate(IbvAhAttr.LAYOUT);
            address.write(attr, 0);
            MemorySegment mac = arena.allocate(EthernetAddress.MAC_BYTES);
            MemorySegment vlan = arena.allocate(CStruct.U16);
            Calls.check(
                    "ibv_resolve_eth_l2_from_gid",
                    address.toString(),
                    LibIbverbs.resolveEthL2FromGid(
                            errno, nativeAddress(), attr.address(), mac.address(), vlan.address()),
                    errno);
            int id = Short.toUnsignedInt(vlan.get(CStruct.U16, 0));
            return new EthernetAddress(
                    mac.toArray(CStruct.U8), id <= EthernetAddress.MAX_VLAN ? id : EthernetAddress.NO_VLAN);
        });
    }

    /**
     * Opens the receiving side of an XRC connection that another process created.
     *
     * @param domain the XRC domain it was created on
     * @param number its queue pair number
     * @return a queue pair that keeps the connection alive and receives its events; nothing can be posted to it
     * @throws VerbsException there is no such queue pair, or the device has no XRC
     */
    public XrcTarget openQueuePair(XrcDomain domain, int number) {
        return make(domain, arena -> {
            MemorySegment function = extendedOperation("ibv_open_qp", VerbsContext.OPEN_QP);
            MemorySegment attr = arena.allocate(IbvQpOpenAttr.LAYOUT);
            attr.set(CStruct.U32, IbvQpOpenAttr.COMP_MASK, XrcTarget.OPEN_MASK);
            attr.set(CStruct.U32, IbvQpOpenAttr.QP_NUM, number);
            attr.set(CStruct.PTR, IbvQpOpenAttr.XRCD, domain.nativeAddress());
            attr.set(CStruct.ENUM, IbvQpOpenAttr.QP_TYPE, QueuePairType.XRC_RECV.value());
            long qp = Calls.create(
                    "ibv_open_qp",
                    "qp_num=" + number,
                    errno -> VerbsOps.openQp(function, errno, nativeAddress(), attr.address()));
            return own(qp, made -> new XrcTarget(made, domain, number), LibIbverbs::destroyQp);
        });
    }

    /**
     * Creates a completion channel. Its descriptor does not block.
     *
     * @return the channel; the caller closes it
     * @throws VerbsException the device refused
     */
    public CompletionChannel createCompletionChannel() {
        return CompletionChannel.create(this);
    }

    /**
     * Creates a completion queue that is only polled.
     *
     * @param entries how many completions it holds at least, 1 or more
     * @return the queue; the caller closes it
     * @throws VerbsException the device refused
     */
    public CompletionQueue createCompletionQueue(int entries) {
        return CompletionQueue.create(this, entries, null, 0);
    }

    /**
     * Creates a completion queue that reports events to a channel.
     *
     * @param entries how many completions it holds at least, 1 or more: all its queue pairs' work requests together, or
     *     it overflows
     * @param channel receives an event for completions once {@link CompletionQueue#requestNotify} has armed the queue
     * @param completionVector which of {@link #completionVectors()} is used, modulo their number; 0 or more
     * @return the queue; the caller closes it
     * @throws VerbsException the device refused
     */
    public CompletionQueue createCompletionQueue(int entries, CompletionChannel channel, int completionVector) {
        return CompletionQueue.create(this, entries, channel, completionVector);
    }

    /**
     * Takes an asynchronous event if there is one, and acknowledges it. Does not block. One thread at a time.
     *
     * @return the event, or null if none is there
     * @throws VerbsException the device is gone
     */
    public @Nullable AsyncEvent tryGetAsyncEvent() {
        return whileOpen(events::tryTake);
    }

    /**
     * Waits for an asynchronous event, and acknowledges it. One thread at a time.
     *
     * @param timeout the longest wait
     * @return the event, or null if none came
     * @throws VerbsException the device is gone
     */
    public @Nullable AsyncEvent awaitAsyncEvent(Duration timeout) {
        long deadline = System.nanoTime() + timeout.toNanos();
        while (true) {
            AsyncEvent event = tryGetAsyncEvent();
            long left = deadline - System.nanoTime();
            if (event != null || left <= 0) {
                return event;
            }
            events.await(left);
        }
    }

    /**
     * Passes all pending asynchronous events to a listener, acknowledged. Does not block. One thread at a time.
     *
     * @param listener called for each event
     * @return how many there were
     * @throws VerbsException the device is gone
     */
    public int drainAsyncEvents(Consumer<? super AsyncEvent> listener) {
        int count = 0;
        for (AsyncEvent event = tryGetAsyncEvent(); event != null; event = tryGetAsyncEvent()) {
            listener.accept(event);
            count++;
        }
        return count;
    }

    /** What the device's events name. */
    AsyncEvents events() {
        return events;
    }

    /**
     * Refuses an object of another device, whose pointer C would take for one of this device.
     *
     * @param object to be used with another
     * @param its the context of the object
     * @param with the other, which is of this context
     */
    void checkOwns(Object object, Context its, Object with) {
        if (its != this && its.nativeAddress() != nativeAddress()) {
            throw new IllegalArgumentException(object + " is of another context than " + with);
        }
    }

    /**
     * Looks up a function of {@code verbs_context}, as verbs_get_ctx_op does: the struct grows at its top, so a
     * function is there if the provider's struct is long enough to reach up to it, and its pointer is set.
     *
     * @param offset in {@code verbs_context} as bound here
     * @return the pointer, or 0
     */
    long operation(long offset) {
        long extended = nativeAddress() - VerbsContext.CONTEXT;
        if (Pointers.readLong(extended + VerbsContext.SZ) < VerbsContext.SIZE - offset) {
            return 0;
        }
        return Pointers.readLong(extended + offset);
    }

    /**
     * Looks up a function of {@code verbs_context} that the caller cannot do without.
     *
     * @param function C's name of it
     * @param offset in {@code verbs_context} as bound here
     * @return the pointer
     * @throws VerbsException the provider does not have it
     */
    MemorySegment extendedOperation(String function, long offset) {
        long pointer = operation(offset);
        if (pointer == 0) {
            throw Failures.failure(function, device.name(), Errno.EOPNOTSUPP);
        }
        return Pointers.function(pointer);
    }

    /**
     * Looks up a function of {@code ibv_context.ops} that a provider may lack.
     *
     * @param function C's name of it
     * @param offset in {@code ibv_context_ops}
     * @return the pointer
     * @throws VerbsException the provider does not have it
     */
    MemorySegment requiredInlineOperation(String function, long offset) {
        MemorySegment pointer = inlineOperation(offset);
        if (pointer.address() == 0) {
            throw Failures.failure(function, device.name(), Errno.EOPNOTSUPP);
        }
        return pointer;
    }

    /**
     * Looks up a function of {@code ibv_context.ops}.
     *
     * @param offset in {@code ibv_context_ops}
     * @return the pointer; its address is 0 if the provider has none
     */
    MemorySegment inlineOperation(long offset) {
        return Pointers.function(Pointers.readLong(nativeAddress() + IbvContext.OPS + offset));
    }

    private static byte portNumber(int port) {
        if (port < 1 || port > 255) {
            throw new IllegalArgumentException("port " + port + " is outside 1 to 255; ports count from 1");
        }
        return (byte) port;
    }

    @Override
    protected void destroy(long closing) {
        if (!owned) {
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            Calls.check("ibv_close_device", device.name(), LibIbverbs.closeDevice(errno, closing), errno);
        }
    }

    @Override
    public String toString() {
        return "Context of " + device.name();
    }
}
