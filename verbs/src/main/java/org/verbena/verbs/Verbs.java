package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsLibrary;
import org.verbena.verbs.memory.ForkStatus;
import org.verbena.verbs.work.CompletionStatus;

/**
 * The entry point to libibverbs. Loading this class never fails: a missing library, device or permission is reported by
 * {@link #unavailabilityCause()}, or by an exception that says what to do.
 *
 * <pre>{@code
 * try (Context context = Verbs.device("mlx5_0").open();
 *         ProtectionDomain domain = context.allocateProtectionDomain()) { ... }
 * }</pre>
 */
public final class Verbs {
    private Verbs() {}

    /**
     * Why nothing here can work now: the library is missing or of an unknown ABI, native access is denied, or there is
     * no RDMA device. Devices come and go, so the answer may change.
     *
     * @return null if there is a device; the message says what to do
     */
    public static @Nullable Throwable unavailabilityCause() {
        Throwable unloadable = libraryUnavailabilityCause();
        if (unloadable != null) {
            return unloadable;
        }
        try {
            return devices().isEmpty() ? new IllegalStateException(NO_DEVICE) : null;
        } catch (NativeRdmaException | UnsupportedOperationException refused) {
            return refused;
        }
    }

    /**
     * Why the library itself cannot be used, whatever devices there are.
     *
     * @return null if it can
     */
    public static @Nullable Throwable libraryUnavailabilityCause() {
        if (!System.getProperty("os.name", "").equals("Linux")) {
            return new UnsatisfiedLinkError("libibverbs exists on Linux only, but this is "
                    + System.getProperty("os.name") + ": use the soft provider");
        }
        if (ValueLayout.ADDRESS.byteSize() != Long.BYTES) {
            return new UnsatisfiedLinkError("libibverbs is bound for 64-bit systems only: use a 64-bit JVM");
        }
        return VerbsLibrary.LIBRARY.unavailabilityCause();
    }

    /**
     * The RDMA devices that are there now.
     *
     * @return a snapshot; may be empty
     * @throws VerbsException the library is missing, or the system refuses to list devices
     */
    public static List<Device> devices() {
        List<Device> devices = new ArrayList<>();
        forEachDevice(address -> {
            devices.add(Device.read(address));
            return false;
        });
        return List.copyOf(devices);
    }

    /**
     * Finds a device.
     *
     * @param name the kernel's name: {@code mlx5_0}, {@code rxe0}
     * @return the device
     * @throws VerbsException there is none of this name; the message lists those there are
     */
    public static Device device(String name) {
        List<Device> devices = devices();
        for (Device device : devices) {
            if (device.name().equals(name)) {
                return device;
            }
        }
        throw noSuchDevice(name, devices);
    }

    /**
     * Prepares the process for fork(2): registered memory is kept from children. Costs time at each registration; not
     * needed on kernels from 5.12 on. To be called before anything is registered.
     *
     * @throws VerbsException the system refused, or it is too late
     */
    public static void forkInit() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            Calls.check("ibv_fork_init", "", LibIbverbs.forkInit(errno), errno);
        }
    }

    /**
     * Reports whether the process may fork.
     *
     * @return its state
     */
    public static ForkStatus forkStatus() {
        return ForkStatus.of(LibIbverbs.isForkInitialized());
    }

    /**
     * The library's name of a node type.
     *
     * @param type the kind
     * @return a few words, such as {@code InfiniBand channel adapter}
     */
    public static String describe(NodeType type) {
        return Pointers.readString(LibIbverbs.nodeTypeStr(type.value()));
    }

    /**
     * The library's name of a port state.
     *
     * @param state the state
     * @return a few words, such as {@code PORT_ACTIVE}
     */
    public static String describe(PortState state) {
        return Pointers.readString(LibIbverbs.portStateStr(state.value()));
    }

    /**
     * The library's name of an asynchronous event.
     *
     * @param type the event
     * @return a few words
     */
    public static String describe(AsyncEventType type) {
        return Pointers.readString(LibIbverbs.eventTypeStr(type.value()));
    }

    /**
     * The library's name of a completion status.
     *
     * @param status the status
     * @return a few words; {@link CompletionStatus#meaning()} has more
     */
    public static String describe(CompletionStatus status) {
        return Pointers.readString(LibIbverbs.wcStatusStr(status.value()));
    }

    /** Visits devices while their list is open. */
    interface DeviceVisitor {
        /**
         * Visits one.
         *
         * @param address of the {@code ibv_device}
         * @return true to end the visit
         */
        boolean visit(long address);
    }

    /**
     * Visits the devices. Their addresses are valid during the visit only, unless the visitor opens one.
     *
     * @param visitor sees one after the other
     */
    static void forEachDevice(DeviceVisitor visitor) {
        Throwable unloadable = libraryUnavailabilityCause();
        if (unloadable != null) {
            VerbsException missing =
                    new VerbsException("ibv_get_device_list()", Errno.ENOSYS, String.valueOf(unloadable.getMessage()));
            missing.initCause(unloadable);
            throw missing;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment count = arena.allocate(ValueLayout.JAVA_INT);
            long list = LibIbverbs.getDeviceList(errno, count.address());
            if (list == 0) {
                throw Failures.failure("ibv_get_device_list", "", Errno.get(errno));
            }
            try {
                int devices = count.get(ValueLayout.JAVA_INT, 0);
                for (int i = 0; i < devices; i++) {
                    long device = Pointers.readLong(list + (long) i * Long.BYTES);
                    AbiCheck.device(device);
                    if (visitor.visit(device)) {
                        return;
                    }
                }
            } finally {
                LibIbverbs.freeDeviceList(list);
            }
        }
    }

    /**
     * Makes the exception for a name that no device has.
     *
     * @param name the requested name
     * @param devices what is there
     * @return the exception
     */
    static VerbsException noSuchDevice(String name, List<Device> devices) {
        String there = devices.isEmpty()
                ? NO_DEVICE
                : "there is no such device; there are "
                        + String.join(", ", devices.stream().map(Device::name).toList());
        return new VerbsException("ibv_open_device(" + name + ")", Errno.ENODEV, there);
    }

    /** The message if there is no device. */
    private static final String NO_DEVICE =
            "there is no RDMA device: load the adapter's driver, or create a software device on any network"
                    + " interface: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0";
}
