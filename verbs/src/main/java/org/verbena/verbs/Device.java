package org.verbena.verbs;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.CpuList;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvDevice;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;

/**
 * An RDMA device as listed. It holds no resource: the device may have been removed when it is opened.
 *
 * <p>Source: ibv_get_device_list(3), ibv_get_device_name(3), ibv_get_device_guid(3), ibv_get_device_index(3)
 *
 * @param name the kernel's name: {@code mlx5_0}, {@code rxe0}
 * @param uverbsName the character device's name: {@code uverbs0}
 * @param index the kernel's stable number of it, -1 on kernels that have none
 * @param guid its node GUID in host order
 * @param nodeType what kind of node it is
 * @param transportType which transport it speaks
 * @param sysfsPath where the kernel describes it
 */
public record Device(
        String name,
        String uverbsName,
        int index,
        long guid,
        NodeType nodeType,
        TransportType transportType,
        String sysfsPath) {

    /** {@code IBV_SYSFS_NAME_MAX}. */
    private static final int NAME_BYTES = 64;

    /** {@code IBV_SYSFS_PATH_MAX}. */
    private static final int PATH_BYTES = 256;

    static Device read(long address) {
        MemorySegment struct = Pointers.view(address, IbvDevice.SIZE);
        return new Device(
                Pointers.readString(struct, IbvDevice.NAME, NAME_BYTES),
                Pointers.readString(struct, IbvDevice.DEV_NAME, NAME_BYTES),
                LibIbverbs.getDeviceIndex(address),
                Pointers.bigEndian(LibIbverbs.getDeviceGuid(address)),
                NodeType.of(struct.get(CStruct.ENUM, IbvDevice.NODE_TYPE)),
                TransportType.of(struct.get(CStruct.ENUM, IbvDevice.TRANSPORT_TYPE)),
                Pointers.readString(struct, IbvDevice.IBDEV_PATH, PATH_BYTES));
    }

    /**
     * Opens it.
     *
     * @return a context of its own; the caller closes it
     * @throws VerbsException the device was removed or cannot be opened: the message says what to do
     * @throws UnsupportedOperationException the library has an unknown ABI
     */
    public Context open() {
        Context[] opened = new Context[1];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            Verbs.forEachDevice(address -> {
                if (!Pointers.readString(LibIbverbs.getDeviceName(address)).equals(name)) {
                    return false;
                }
                long context = LibIbverbs.openDevice(errno, address);
                if (context == 0) {
                    throw Failures.failure("ibv_open_device", name, Errno.get(errno));
                }
                opened[0] = VerbsObject.own(
                        context,
                        made -> {
                            AbiCheck.context(made, address);
                            return new Context(made, this, true);
                        },
                        Context::closeDevice);
                return true;
            });
        }
        Context context = opened[0];
        if (context == null) {
            throw Verbs.noSuchDevice(name, Verbs.devices());
        }
        return context;
    }

    /**
     * The kernel driver of the PCI function that the device is on. For adapters whose network driver makes the RDMA
     * device, it is the network driver: {@code mlx5_core} or {@code ice}. Reads {@link #sysfsPath()}. For what follows
     * from it see {@link Context#driverFamily()}.
     *
     * @return its name; null for devices without hardware, and where sysfs cannot be read
     */
    public @Nullable String driverName() {
        try {
            Path name = Path.of(sysfsPath, "device", "driver").toRealPath().getFileName();
            return name == null ? null : name.toString();
        } catch (IOException | InvalidPathException none) {
            return null;
        }
    }

    /**
     * The NUMA node that the device is attached to. Reads {@link #sysfsPath()}.
     *
     * @return from 0; -1 for devices without hardware, on machines with one node, and where sysfs cannot be read
     */
    public int numaNode() {
        try {
            return Integer.parseInt(
                    Files.readString(Path.of(sysfsPath, "device", "numa_node")).strip());
        } catch (IOException | InvalidPathException | NumberFormatException none) {
            return -1;
        }
    }

    /**
     * The processors of the NUMA node that the device is attached to. Reads {@link #sysfsPath()}.
     *
     * @return their numbers; empty for devices without hardware, and where sysfs is not to be read
     */
    public BitSet localProcessors() {
        try {
            return CpuList.parse(Files.readString(Path.of(sysfsPath, "device", "local_cpulist")));
        } catch (IOException | InvalidPathException | NumberFormatException none) {
            return new BitSet();
        }
    }

    /**
     * The node GUID as tools print it.
     *
     * @return {@code 0204:56ff:fe78:9abc}
     */
    public String guidText() {
        return "%04x:%04x:%04x:%04x".formatted(guid >>> 48, guid >>> 32 & 0xffff, guid >>> 16 & 0xffff, guid & 0xffff);
    }
}
