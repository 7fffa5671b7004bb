package org.verbena.doctor;

import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
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

/** The libraries, and each device with its ports, GIDs and interfaces. */
final class DeviceChecks {
    static final String LIBRARIES = "libraries";
    static final String DEVICES = "devices";

    private final SystemFiles files;
    private final Set<InetAddress> addresses = new LinkedHashSet<>();
    private @Nullable Map<String, List<InetAddress>> byDevice;

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

    /** Whether there is a device, whatever its state. */
    boolean isAnyThere() {
        try {
            return !Verbs.devices().isEmpty();
        } catch (NativeRdmaException | UnsupportedOperationException refused) {
            return false;
        }
    }

    /** A finding for each device and port, or one finding that there is none. */
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
                findings.add(Finding.ok(
                        device.name() + " driver", context.driverFamily().describe()));
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
        String interfaceName = interfaceName(context.device().name(), gids);
        String evidence = port.state() + ", " + port.linkLayer() + ", MTU " + port.activeMtu() + " of " + port.maxMtu()
                + ", " + context.gigabitsPerSecond(number) + " Gb/s"
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
        List<InetAddress> served = served(context.device().name());
        addresses.addAll(served);
        String entries = gids.size() + (gids.size() == 1 ? " entry" : " entries");
        if (served.isEmpty() && isElsewhere(interfaceName)) {
            return Finding.failure(
                    name,
                    entries + ", but its interface " + interfaceName + " is not in this network namespace",
                    "run in the namespace that has the interface (a container: with the host's network), or move it here"
                            + " with ip link set " + interfaceName + " netns NAME, and the device with rdma dev set "
                            + context.device().name() + " netns NAME");
        }
        if (port.linkLayer() == LinkLayer.ETHERNET && served.isEmpty()) {
            return Finding.warning(
                    name,
                    entries + ", but rdma_cm takes the device for no address of this machine",
                    "ip address add ADDRESS dev " + (interfaceName.isEmpty() ? "INTERFACE" : interfaceName)
                            + ": connections are made by IP addresses");
        }
        List<String> rows = new ArrayList<>();
        for (InetAddress address : served) {
            StringBuilder row = new StringBuilder(address.getHostAddress());
            gids.stream()
                    .filter(gid -> gid.type() == GidType.ROCE_V2
                            && gid.gid().toInetAddress().equals(address))
                    .findFirst()
                    .ifPresent(gid -> row.append(" at index ").append(gid.index()));
            rows.add(row.toString());
        }
        return Finding.ok(name, rows.isEmpty() ? entries : "rdma_cm takes it for " + String.join(", ", rows));
    }

    /** Whether the interface has a known name but is not in this network namespace. */
    private static boolean isElsewhere(String interfaceName) {
        try {
            return !interfaceName.isEmpty() && NetworkInterface.getByName(interfaceName) == null;
        } catch (SocketException unreadable) {
            return false;
        }
    }

    /** The addresses of this machine for which rdma_cm takes a device. */
    private List<InetAddress> served(String device) {
        Map<String, List<InetAddress>> known = byDevice;
        if (known == null) {
            known = new HashMap<>();
            for (InetAddress address : localAddresses()) {
                String name = Routes.device(address);
                if (name != null) {
                    known.computeIfAbsent(name, none -> new ArrayList<>()).add(address);
                }
            }
            byDevice = known;
        }
        return known.getOrDefault(device, List.of());
    }

    private static List<InetAddress> localAddresses() {
        try {
            return NetworkInterface.networkInterfaces()
                    .flatMap(NetworkInterface::inetAddresses)
                    .filter(address -> !address.isLoopbackAddress() && !address.isLinkLocalAddress())
                    .toList();
        } catch (SocketException unreadable) {
            return List.of();
        }
    }

    /** The network interface of a device, empty if it is not known: a port that is down may have no GID. */
    private String interfaceName(String device, List<GidEntry> gids) {
        for (GidEntry gid : gids) {
            String name = interfaceName(gid.networkInterfaceIndex());
            if (!name.isEmpty()) {
                return name;
            }
        }
        String folder = "sys/class/infiniband/" + device;
        String parent = files.line(folder + "/parent"); // of rdma_rxe
        if (!parent.isEmpty()) {
            return parent;
        }
        List<String> names = files.names(folder + "/device/net");
        return names.isEmpty() ? "" : names.getFirst();
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
