package org.verbena.doctor;

import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.Cm;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.device.TransportType;

/** The libraries, and each device with its ports, GIDs and interfaces. */
final class DeviceChecks {
    static final String LIBRARIES = "libraries";
    static final String DEVICES = "devices";

    private final SystemFiles files;
    private final Set<InetAddress> addresses = new LinkedHashSet<>();

    DeviceChecks(SystemFiles files) {
        this.files = files;
    }

    /** Whether libibverbs and librdmacm load, and which they are. */
    Finding libraries() {
        Throwable cause = Verbs.libraryUnavailabilityCause();
        if (cause == null) {
            cause = Cm.libraryUnavailabilityCause();
        }
        if (cause != null) {
            return Finding.failure(LIBRARIES, cause);
        }
        Set<String> loaded = new LinkedHashSet<>();
        for (String mapping : files.lines("proc/self/maps")) {
            String file = mapping.substring(mapping.lastIndexOf('/') + 1);
            if (file.startsWith("libibverbs.so") || file.startsWith("librdmacm.so")) {
                loaded.add(file);
            }
        }
        return Finding.ok(LIBRARIES, String.join(", ", loaded));
    }

    /** A finding for each device and port; one that there is none otherwise. */
    List<Finding> devices() {
        List<Device> devices;
        try {
            devices = Verbs.devices();
        } catch (NativeRdmaException | UnsupportedOperationException refused) {
            return List.of(Finding.failure(DEVICES, refused));
        }
        if (devices.isEmpty()) {
            return List.of(Finding.skipped(DEVICES, "there is none"));
        }
        List<Finding> findings = new ArrayList<>();
        for (Device device : devices) {
            try (Context context = device.open()) {
                List<GidEntry> gids = context.queryGids();
                for (int port = 1; port <= context.queryDevice().ports(); port++) {
                    examinePort(context, port, gids, findings);
                }
            } catch (NativeRdmaException refused) {
                findings.add(Finding.failure(device.name(), refused));
            }
        }
        return findings;
    }

    /** The addresses of this machine that a device serves, as {@link #devices} found them. */
    Set<InetAddress> addresses() {
        return addresses;
    }

    private void examinePort(Context context, int number, List<GidEntry> all, List<Finding> findings) {
        PortAttributes port = context.queryPort(number);
        String name = context.device().name() + " port " + number;
        List<GidEntry> gids = all.stream()
                .filter(gid -> gid.port() == number && !gid.gid().isZero())
                .toList();
        String interfaceName = gids.stream()
                .map(gid -> interfaceName(gid.networkInterfaceIndex()))
                .filter(found -> !found.isEmpty())
                .findFirst()
                .orElse("");
        String evidence = port.state() + ", " + port.linkLayer() + ", MTU " + port.activeMtu() + " of " + port.maxMtu()
                + ", " + port.gigabitsPerSecond() + " Gb/s"
                + (interfaceName.isEmpty() ? "" : ", interface " + interfaceName);
        if (port.state() != PortState.ACTIVE) {
            findings.add(Finding.failure(
                    name,
                    evidence,
                    port.linkLayer() == LinkLayer.ETHERNET
                            ? "ip link set "
                                    + (interfaceName.isEmpty() ? "INTERFACE (rdma link names it)" : interfaceName)
                                    + " up, then the cable and the switch"
                            : "see that a subnet manager runs (opensm, or the switch's), then the cable"));
            return;
        }
        findings.add(Finding.ok(name, evidence));
        findings.add(gids(name + " GIDs", context, port, gids, interfaceName));
    }

    private Finding gids(String name, Context context, PortAttributes port, List<GidEntry> gids, String interfaceName) {
        if (gids.isEmpty()) {
            return Finding.failure(
                    name,
                    "the table is empty in this network namespace",
                    "give the device's interface an address in this namespace; move the device here with rdma dev set "
                            + context.device().name() + " netns NAME, or share it with rdma system set netns shared");
        }
        boolean byAddress = port.linkLayer() == LinkLayer.ETHERNET;
        List<InetAddress> served = new ArrayList<>();
        List<String> rows = new ArrayList<>();
        for (GidEntry gid : gids) {
            InetAddress address = gid.gid().toInetAddress();
            boolean picked = gid.type() == GidType.ROCE_V2
                    && !address.isLinkLocalAddress()
                    && isLocal(address)
                    && served.add(address);
            if (picked) {
                rows.add(address.getHostAddress() + " at index " + gid.index());
            }
        }
        if (context.device().transportType() == TransportType.IWARP) {
            served.addAll(interfaceAddresses(interfaceOf(context.device().name(), interfaceName)));
            served.forEach(address -> rows.add(address.getHostAddress()));
        }
        addresses.addAll(served);
        if (byAddress && served.isEmpty()) {
            return Finding.warning(
                    name,
                    gids.size() + " entries, none for an IP address of this machine",
                    "ip address add ADDRESS dev " + (interfaceName.isEmpty() ? "INTERFACE" : interfaceName)
                            + ": connections are made by IP addresses");
        }
        return Finding.ok(name, rows.isEmpty() ? gids.size() + " entries" : "rdma_cm takes " + String.join(", ", rows));
    }

    /** The interface of an iWARP device: its GIDs may name none. */
    private String interfaceOf(String device, String known) {
        if (!known.isEmpty()) {
            return known;
        }
        List<String> names = files.names("sys/class/infiniband/" + device + "/device/net");
        if (!names.isEmpty()) {
            return names.getFirst();
        }
        return files.line("sys/class/infiniband/" + device + "/ports/1/gid_attrs/ndevs/0");
    }

    private static List<InetAddress> interfaceAddresses(String name) {
        try {
            NetworkInterface found = name.isEmpty() ? null : NetworkInterface.getByName(name);
            return found == null
                    ? List.of()
                    : found.inetAddresses()
                            .filter(address -> !address.isLinkLocalAddress() && address.getAddress().length == 4)
                            .toList();
        } catch (SocketException gone) {
            return List.of();
        }
    }

    private static boolean isLocal(InetAddress address) {
        try {
            return NetworkInterface.getByInetAddress(address) != null;
        } catch (SocketException unreadable) {
            return false;
        }
    }

    private static String interfaceName(int index) {
        try {
            @Nullable NetworkInterface found = index == 0 ? null : NetworkInterface.getByIndex(index);
            return found == null ? "" : found.getName();
        } catch (SocketException gone) {
            return "";
        }
    }
}
