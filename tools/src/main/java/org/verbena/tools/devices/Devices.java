package org.verbena.tools.devices;

import java.io.PrintWriter;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.Json;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.device.TransportType;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Lists the RDMA devices of this machine; if there are none, says why and what to do. */
@Command(name = "devices", description = "Lists this machine's RDMA devices, their ports and limits.")
public final class Devices implements Callable<Integer> {
    @Option(names = "--json", description = "Print as JSON.")
    private boolean json;

    @Option(
            names = {"-v", "--verbose"},
            description = "Print everything that ibv_devinfo -v prints; with --json, the extended attributes as well.")
    private boolean verbose;

    @Option(names = "--list", description = "Print names and GUIDs, as ibv_devices does; opens no device.")
    private boolean list;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() {
        if (list && (json || verbose)) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--list goes with neither --json nor -v");
        }
        Throwable cause = Verbs.unavailabilityCause();
        PrintWriter out = spec.commandLine().getOut();
        if (cause != null) {
            if (json) {
                Map<String, Object> answer = new LinkedHashMap<>();
                answer.put("devices", List.of());
                answer.put("unavailabilityCause", String.valueOf(cause.getMessage()));
                out.print(Json.of(answer));
                out.flush();
            }
            throw new CommandFailure("no RDMA device can be used: " + cause.getMessage()
                    + "\nWithout one, everything but the commands for the raw bindings runs on the software provider (--provider soft)."
                    + "\nverbena doctor checks each step to a device.");
        }
        if (list) {
            printNames(out);
            return CommandLine.ExitCode.OK;
        }
        List<Record> described = new ArrayList<>();
        for (Device device : Verbs.devices()) {
            try (Context context = device.open()) {
                if (verbose && !json) {
                    new DeviceReport(out).print(context);
                } else {
                    OpenDevice open = describe(context);
                    described.add(verbose ? new VerboseDevice(open, context.queryDeviceExtended()) : open);
                }
            } catch (NativeRdmaException refused) {
                // One broken device must not hide the others.
                described.add(new BrokenDevice(device.name(), String.valueOf(refused.getMessage())));
            }
        }
        if (json) {
            out.print(Json.of(Map.of("devices", described)));
        } else {
            for (Record device : described) {
                switch (device) {
                    case BrokenDevice broken -> out.println(broken.name() + ": " + broken.failure());
                    case OpenDevice open -> print(out, open);
                    default -> throw new IllegalStateException(device.toString());
                }
            }
        }
        out.flush();
        return CommandLine.ExitCode.OK;
    }

    /** Exactly what {@code ibv_devices} prints. */
    private static void printNames(PrintWriter out) {
        out.printf(Locale.ROOT, "    %-16s\t   node GUID%n", "device");
        out.printf(Locale.ROOT, "    %-16s\t----------------%n", "------");
        for (Device device : Verbs.devices()) {
            out.printf(Locale.ROOT, "    %-16s\t%016x%n", device.name(), device.guid());
        }
        out.flush();
    }

    /** A device that cannot be opened. */
    record BrokenDevice(String name, String failure) {}

    /** A device with the fields that {@code --json -v} adds. */
    record VerboseDevice(OpenDevice device, ExtendedDeviceAttributes extended) {}

    /** A device, as it is printed. */
    record OpenDevice(
            String name,
            TransportType transport,
            NodeType nodeType,
            String guid,
            String firmware,
            String driver,
            int completionVectors,
            List<Port> ports,
            DeviceAttributes limits) {}

    /** A port, as it is printed. */
    record Port(
            int number,
            PortState state,
            LinkLayer linkLayer,
            Mtu activeMtu,
            Mtu maxMtu,
            int lid,
            double gigabitsPerSecond,
            List<GidRow> gids) {}

    /** An entry of a GID table, as it is printed. */
    record GidRow(int index, String gid, GidType type, String networkInterface, String address) {}

    private static OpenDevice describe(Context context) {
        Device device = context.device();
        DeviceAttributes attributes = context.queryDevice();
        List<GidEntry> gids = context.queryGids();
        List<Port> ports = new ArrayList<>();
        for (int number = 1; number <= attributes.ports(); number++) {
            PortAttributes port = context.queryPort(number);
            List<GidRow> rows = new ArrayList<>();
            for (GidEntry gid : gids) {
                if (gid.port() == number) {
                    rows.add(new GidRow(
                            gid.index(),
                            gid.gid().toString(),
                            gid.type(),
                            interfaceName(gid.networkInterfaceIndex()),
                            gid.gid().toInetAddress().getHostAddress()));
                }
            }
            ports.add(new Port(
                    number,
                    port.state(),
                    port.linkLayer(),
                    port.activeMtu(),
                    port.maxMtu(),
                    port.lid(),
                    context.gigabitsPerSecond(number),
                    rows));
        }
        return new OpenDevice(
                device.name(),
                device.transportType(),
                device.nodeType(),
                device.guidText(),
                attributes.firmwareVersion(),
                context.driverFamily().describe(),
                context.completionVectors(),
                ports,
                attributes);
    }

    private static String interfaceName(int index) {
        try {
            NetworkInterface found = index == 0 ? null : NetworkInterface.getByIndex(index);
            return found == null ? "" : found.getName();
        } catch (SocketException gone) {
            return "";
        }
    }

    private static void print(PrintWriter out, OpenDevice device) {
        out.println(device.name() + ": " + device.transport() + " " + device.nodeType() + ", firmware "
                + device.firmware() + ", GUID " + device.guid());
        out.println("  driver: " + device.driver());
        for (Port port : device.ports()) {
            out.println("  port " + port.number() + ": " + port.state() + ", " + port.linkLayer() + ", MTU "
                    + port.activeMtu() + " of " + port.maxMtu() + ", " + port.gigabitsPerSecond() + " Gb/s, LID "
                    + port.lid());
            for (GidRow gid : port.gids()) {
                out.println("    GID " + gid.index() + ": " + gid.gid() + " " + gid.type() + " "
                        + gid.networkInterface() + " " + gid.address());
            }
        }
        DeviceAttributes limits = device.limits();
        out.println("  limits: " + limits.maxQueuePairs() + " queue pairs, " + limits.maxWorkRequests()
                + " work requests a queue, " + limits.maxSges() + " SGEs, " + limits.maxCompletionQueues()
                + " completion queues of " + limits.maxCompletionQueueEntries() + " entries, " + limits.maxRegions()
                + " regions of " + limits.maxRegionBytes() + " bytes, " + limits.maxReadsAsInitiator() + "/"
                + limits.maxReadsAsTarget() + " reads, atomics " + limits.atomics() + ", "
                + limits.maxSharedReceiveQueues() + " shared receive queues");
    }
}
