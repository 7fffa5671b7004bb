package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.FileDescriptors;
import org.verbena.verbs.ffm.IbvAsyncEvent;
import org.verbena.verbs.ffm.IbvContext;
import org.verbena.verbs.ffm.IbvDeviceAttr;
import org.verbena.verbs.ffm.IbvGidEntry;
import org.verbena.verbs.ffm.IbvPortAttr;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;

/**
 * An open device. Everything else is made on it and closed before it. Any thread, {@link #tryGetAsyncEvent()} excepted: that belongs to
 * one thread at a time.
 *
 * <p>Source: ibv_open_device(3)
 */
public final class Context extends VerbsObject {
    private final Device device;
    private final boolean owned;
    private final int completionVectors;
    private final int asyncFd;
    private boolean asyncNonBlocking;

    Context(long address, Device device, boolean owned) {
        super(address);
        this.device = device;
        this.owned = owned;
        MemorySegment struct = Pointers.view(address, IbvContext.SIZE);
        this.completionVectors = struct.get(CStruct.I32, IbvContext.NUM_COMP_VECTORS);
        this.asyncFd = struct.get(CStruct.I32, IbvContext.ASYNC_FD);
    }

    /**
     * Takes a context that another library opened, such as librdmacm's {@code cm_id->verbs}. Closing it here leaves it open there; keep one
     * of these per C context, because objects find their parents by it.
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
     * What was opened.
     *
     * @return the device
     */
    public Device device() {
        return device;
    }

    /**
     * How many completion vectors there are: interrupts, each served by a processor.
     *
     * @return 1 or more; completion queues take their vector modulo this
     */
    public int completionVectors() {
        return completionVectors;
    }

    /**
     * What becomes readable when {@link #tryGetAsyncEvent()} has something.
     *
     * @return a file descriptor that stays the context's
     */
    public int asyncFd() {
        nativeAddress();
        return asyncFd;
    }

    /**
     * Asks what the device can do.
     *
     * @return its attributes
     * @throws VerbsException the device refused
     */
    public DeviceAttributes queryDevice() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attr = arena.allocate(IbvDeviceAttr.LAYOUT);
            Calls.check("ibv_query_device", "", LibIbverbs.queryDevice(errno, nativeAddress(), attr.address()), errno);
            return DeviceAttributes.read(attr);
        }
    }

    /**
     * Asks for the state of a port.
     *
     * @param port 1 or more
     * @return its attributes
     * @throws VerbsException there is no such port, or the device refused
     */
    public PortAttributes queryPort(int port) {
        byte number = portNumber(port);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attr = arena.allocate(IbvPortAttr.LAYOUT);
            // As the header's inline does: the function in verbs_context knows the struct's size; the exported one, for
            // providers without it, knows a shorter struct only and leaves the rest zero.
            long function = operation(VerbsContext.QUERY_PORT);
            int result = function != 0
                    ? VerbsOps.queryPort(
                            Pointers.function(function), nativeAddress(), number, attr.address(), IbvPortAttr.SIZE)
                    : LibIbverbs.queryPort(errno, nativeAddress(), number, attr.address());
            Calls.check("ibv_query_port", "port=" + port, result, errno);
            return PortAttributes.read(attr);
        }
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
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment entry = arena.allocate(IbvGidEntry.LAYOUT);
            int result = LibIbverbs.queryGidEx(nativeAddress(), port, index, entry.address(), 0, IbvGidEntry.SIZE);
            if (result != 0) {
                throw Failures.failure("ibv_query_gid_ex", "port=" + port + ", index=" + index, Math.abs(result));
            }
            return readGid(entry);
        }
    }

    /**
     * Reads all entries of all ports' GID tables that are in use.
     *
     * @return the entries
     * @throws VerbsException the device refused
     */
    public List<GidEntry> queryGids() {
        int entries = 0;
        int ports = queryDevice().ports();
        for (int port = 1; port <= ports; port++) {
            entries += queryPort(port).gidTableEntries();
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment table = arena.allocate(IbvGidEntry.LAYOUT, Math.max(entries, 1));
            long found = LibIbverbs.queryGidTable(nativeAddress(), table.address(), entries, 0, IbvGidEntry.SIZE);
            if (found < 0) {
                throw Failures.failure("ibv_query_gid_table", "entries=" + entries, (int) -found);
            }
            List<GidEntry> gids = new ArrayList<>();
            for (int i = 0; i < found; i++) {
                gids.add(readGid(table.asSlice(i * IbvGidEntry.SIZE, IbvGidEntry.SIZE)));
            }
            return List.copyOf(gids);
        }
    }

    private static GidEntry readGid(MemorySegment entry) {
        return new GidEntry(
                readGid(entry, IbvGidEntry.GID),
                entry.get(CStruct.U32, IbvGidEntry.GID_INDEX),
                entry.get(CStruct.U32, IbvGidEntry.PORT_NUM),
                GidType.of(entry.get(CStruct.U32, IbvGidEntry.GID_TYPE)),
                entry.get(CStruct.U32, IbvGidEntry.NDEV_IFINDEX));
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
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment pkey = arena.allocate(CStruct.U16);
            Calls.check(
                    "ibv_query_pkey",
                    "port=" + port + ", index=" + index,
                    LibIbverbs.queryPkey(errno, nativeAddress(), number, index, pkey.address()),
                    errno);
            return Short.toUnsignedInt(Pointers.bigEndian(pkey.get(CStruct.U16, 0)));
        }
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
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            int index = LibIbverbs.getPkeyIndex(errno, nativeAddress(), number, Pointers.bigEndian((short) pkey));
            if (index < 0) {
                throw new VerbsException(
                        "ibv_get_pkey_index(port=" + port + ", pkey=0x" + Integer.toHexString(pkey) + ")",
                        Errno.ENOENT,
                        "the port's table has no such key; queryPkey lists those it has");
            }
            return index;
        }
    }

    /**
     * Allocates a protection domain.
     *
     * @return the domain; the caller closes it
     * @throws VerbsException the device refused
     */
    public ProtectionDomain allocateProtectionDomain() {
        hold(this);
        try {
            long pd = Calls.create("ibv_alloc_pd", device.name(), errno -> LibIbverbs.allocPd(errno, nativeAddress()));
            return new ProtectionDomain(pd, this, true);
        } finally {
            release(this);
        }
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
     * Creates a completion queue that tells a channel.
     *
     * @param entries how many completions it holds at least, 1 or more: all its queue pairs' work requests together, or it overflows
     * @param channel hears of completions once {@link CompletionQueue#requestNotify} has asked
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
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            if (!asyncNonBlocking) {
                FileDescriptors.setNonBlocking(errno, asyncFd());
                asyncNonBlocking = true;
            }
            MemorySegment event = arena.allocate(IbvAsyncEvent.LAYOUT);
            if (LibIbverbs.getAsyncEvent(errno, nativeAddress(), event.address()) != 0) {
                int cause = Errno.get(errno);
                if (cause == Errno.EAGAIN || cause == Errno.EINTR) {
                    return null;
                }
                throw Failures.failure("ibv_get_async_event", device.name(), cause);
            }
            try {
                return AsyncEvent.read(this, event);
            } finally {
                LibIbverbs.ackAsyncEvent(event.address());
            }
        }
    }

    /**
     * Looks up a function of {@code verbs_context}, as verbs_get_ctx_op does: the struct grows at its top, so a function is there if the
     * provider's struct is long enough to reach up to it, and its pointer is set.
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
    void destroy(long closing) {
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
