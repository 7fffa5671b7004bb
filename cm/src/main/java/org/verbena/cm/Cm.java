package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.CmLibrary;
import org.verbena.cm.ffm.RdmaAddrinfo;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.verbs.Context;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.Pointers;

/** The connection manager: its availability, its devices, and name resolution. */
public final class Cm {
    /**
     * Devices by the address of their {@code ibv_context}. librdmacm opens each once; it closes one that was removed
     * when no id and no list refers to it. So these addresses stay valid until the list that has them is freed. Changed
     * under its own lock.
     */
    private static final Map<Long, Context> DEVICES = new ConcurrentHashMap<>();

    /**
     * The newest list, and older ones with removed devices that are still in use here. Under the lock of the devices.
     */
    private static final List<DeviceList> LISTS = new ArrayList<>();

    /** What {@code rdma_get_devices} gave, and the contexts in it. */
    private record DeviceList(long address, Set<Long> contexts) {}

    private Cm() {}

    /**
     * Why the connection manager cannot work here: librdmacm is missing or of an unknown version, there is no RDMA
     * device, no kernel module, or no permission. Checks again on each call; never throws.
     *
     * @return null if it can; otherwise a throwable whose message says what to do
     */
    public static @Nullable Throwable unavailabilityCause() {
        Throwable missing = libraryUnavailabilityCause();
        if (missing != null) {
            return missing;
        }
        try (EventChannel channel = EventChannel.open();
                CmId id = CmId.create(channel, PortSpace.TCP)) {
            return id.isClosed() ? new IllegalStateException(id + " is closed") : null;
        } catch (CmException | UnsupportedOperationException failure) {
            return failure;
        }
    }

    /**
     * Why librdmacm itself cannot be used, whatever devices there are.
     *
     * @return null if it can
     */
    public static @Nullable Throwable libraryUnavailabilityCause() {
        return CmLibrary.LIBRARY.unavailabilityCause();
    }

    /**
     * The devices of this machine. They belong to librdmacm and are the same objects that {@link CmId#device} returns.
     * They stay open until the process ends, unless the device is removed: then the next call of this method that finds
     * no object left on the device closes it, and librdmacm closes it with the last id on it, so that the system can
     * remove it. A device that is added again is another object.
     *
     * <p>librdmacm closes a removed device only from rdma-core 30 on, and only while there is another device.
     *
     * @return possibly none
     * @throws CmException if the devices cannot be read
     * @throws UnsupportedOperationException if librdmacm is missing
     */
    public static List<Context> devices() {
        synchronized (DEVICES) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment errno = Errno.newCapture(arena);
                MemorySegment count = arena.allocate(ValueLayout.JAVA_INT);
                long list = RdmaCm.getDevices(errno, count.address());
                if (list == 0) {
                    int code = Errno.get(errno);
                    if (code == Errno.ENODEV) {
                        return List.of();
                    }
                    throw new CmException("rdma_get_devices()", code);
                }
                List<Context> devices = new ArrayList<>();
                Set<Long> contexts = new HashSet<>();
                try {
                    for (int i = 0; i < count.get(ValueLayout.JAVA_INT, 0); i++) {
                        long context = Pointers.readLong(list + (long) i * Long.BYTES);
                        devices.add(wrap(context));
                        contexts.add(context);
                    }
                } finally {
                    LISTS.add(new DeviceList(list, contexts));
                }
                closeRemoved(contexts);
                freeLists(errno, contexts);
                return List.copyOf(devices);
            }
        }
    }

    /** The object for a context's address; a new one if the program closed it, which closes nothing in C. */
    private static Context wrap(long context) {
        Context known = DEVICES.get(context);
        if (known == null || !known.isOpen()) {
            known = Context.wrap(context);
            DEVICES.put(context, known);
        }
        return known;
    }

    /** Closes the devices that were removed and have no objects left. */
    private static void closeRemoved(Set<Long> present) {
        DEVICES.entrySet().removeIf(device -> !present.contains(device.getKey()) && isClosed(device.getValue()));
    }

    private static boolean isClosed(Context removed) {
        try {
            removed.close();
            return true;
        } catch (IllegalStateException inUse) {
            return false;
        }
    }

    /** Frees the lists whose devices are all unused or in the newest list. */
    private static void freeLists(MemorySegment errno, Set<Long> present) {
        DeviceList newest = LISTS.removeLast();
        LISTS.removeIf(list -> {
            boolean isNeeded = list.contexts.stream()
                    .anyMatch(context -> !present.contains(context) && DEVICES.containsKey(context));
            if (!isNeeded) {
                RdmaCm.freeDevices(errno, list.address);
            }
            return !isNeeded;
        });
        LISTS.add(newest);
    }

    /**
     * The device of a {@code struct ibv_context *} in an open id.
     *
     * @return null if it was removed, and closed here
     */
    static @Nullable Context deviceAt(long context) {
        Context known = DEVICES.get(context);
        if (known == null || !known.isOpen()) {
            // A device that came after the last list: take a list, which keeps it.
            devices();
            known = DEVICES.get(context);
        }
        return known;
    }

    /**
     * Looks up addresses for RDMA. Blocks on name resolution.
     *
     * @param node a host name or address; null with {@link AddressInfo.Flag#PASSIVE} for any
     * @param service a port number or service name; null for none
     * @param hints the kind of address wanted
     * @return one entry per address, the best first
     * @throws CmException if nothing was found
     */
    public static List<AddressInfo> addressInfo(
            @Nullable String node, @Nullable String service, AddressInfo.Hints hints) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG);
            int rc = RdmaCm.getaddrinfo(
                    errno,
                    node == null ? 0 : arena.allocateFrom(node).address(),
                    service == null ? 0 : arena.allocateFrom(service).address(),
                    hints.write(arena).address(),
                    result.address());
            String call = "rdma_getaddrinfo(" + node + ", " + service + ", " + hints + ")";
            if (rc != 0) {
                throw CmException.ofAddressInfo(call, rc, Errno.get(errno));
            }
            long first = result.get(ValueLayout.JAVA_LONG, 0);
            try {
                List<AddressInfo> infos = new ArrayList<>();
                for (long next = first; next != 0; ) {
                    MemorySegment info = Pointers.view(next, RdmaAddrinfo.SIZE);
                    infos.add(AddressInfo.copy(info));
                    next = info.get(CStruct.PTR, RdmaAddrinfo.AI_NEXT);
                }
                return List.copyOf(infos);
            } finally {
                RdmaCm.freeaddrinfo(errno, first);
            }
        }
    }
}
