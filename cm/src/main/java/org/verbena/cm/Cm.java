package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.RdmaAddrinfo;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.verbs.Context;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.Pointers;

/** The connection manager: its availability, its devices, and name resolution. */
public final class Cm {
    /**
     * Devices by the address of their {@code ibv_context}. librdmacm opens each once and may close it when it is removed and no id or
     * list refers to it; the list that a device was found in is therefore never given back, and these addresses stay good.
     */
    private static final Map<Long, Context> DEVICES = new ConcurrentHashMap<>();

    private Cm() {}

    /**
     * Why the connection manager cannot work here: librdmacm is missing or of an unknown version, there is no RDMA
     * device, no kernel module, or no permission. Checks anew each time; never throws.
     *
     * @return null if it can; otherwise a throwable whose message says what to do
     */
    public static @Nullable Throwable unavailabilityCause() {
        Throwable missing = RdmaCm.LIBRARY.unavailabilityCause();
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
     * The devices of this machine. They belong to librdmacm, stay open as long as the process, and are the same objects
     * that {@link CmId#device} returns.
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
                boolean anyNew = false;
                for (int i = 0; i < count.get(ValueLayout.JAVA_INT, 0); i++) {
                    long context = Pointers.readLong(list + (long) i * Long.BYTES);
                    anyNew |= !DEVICES.containsKey(context);
                    devices.add(wrap(context));
                }
                if (!anyNew) {
                    RdmaCm.freeDevices(errno, list);
                }
                return List.copyOf(devices);
            }
        }
    }

    /** The device of a {@code struct ibv_context *} in an open id. */
    static Context deviceAt(long context) {
        if (!DEVICES.containsKey(context)) {
            // A device that came after the last list: take a list, which keeps it.
            devices();
        }
        return wrap(context);
    }

    /** The object of an address; another one if somebody closed it, which closes nothing in C. */
    private static Context wrap(long context) {
        Context wrapped = DEVICES.compute(
                context, (address, known) -> known != null && known.isOpen() ? known : Context.wrap(address));
        return Objects.requireNonNull(wrapped);
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
                    MemorySegment info = RdmaAddrinfo.at(next);
                    infos.add(AddressInfo.copy(info));
                    next = RdmaAddrinfo.next(info);
                }
                return List.copyOf(infos);
            } finally {
                RdmaCm.freeaddrinfo(errno, first);
            }
        }
    }
}
