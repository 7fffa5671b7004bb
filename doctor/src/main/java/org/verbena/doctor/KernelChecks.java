package org.verbena.doctor;

import java.util.ArrayList;
import java.util.List;

/** What the kernel must provide: modules, devices, device nodes with permissions, and lockable memory. */
final class KernelChecks {
    static final String MODULES = "kernel modules";
    static final String NODES = "device nodes";
    static final String MEMORY = "locked memory";

    /** With less, not even a few connections get their receive buffers, whatever is configured. */
    private static final long MIN_LOCKED_BYTES = 8L << 20;

    /** The default limit of the two pools of registered buffers, to which they grow under load. */
    private static final long WANTED_LOCKED_BYTES = 2L << 30;

    private static final int KIBIBYTE = 1024;
    private static final String IN_CONTAINERS = "in containers pass --device=/dev/infiniband";

    private final SystemFiles files;

    KernelChecks(SystemFiles files) {
        this.files = files;
    }

    /** Whether the kernel has a device, whatever its state. */
    boolean hasDevice() {
        return !files.names("sys/class/infiniband").isEmpty();
    }

    /** Whether the kernel has RDMA and a device. */
    Finding modules() {
        List<String> missing = new ArrayList<>();
        for (String module : List.of("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm")) {
            if (!files.hasModule(module)) {
                missing.add(module);
            }
        }
        List<String> devices = files.names("sys/class/infiniband");
        if (missing.contains("ib_core")) {
            return Finding.failure(
                    MODULES,
                    "the kernel has no RDMA subsystem loaded: " + String.join(", ", missing),
                    "modprobe rdma_ucm ib_uverbs, and the adapter's driver or rdma_rxe");
        }
        if (!missing.isEmpty()) {
            return Finding.failure(
                    MODULES, "not loaded: " + String.join(", ", missing), "modprobe " + String.join(" ", missing));
        }
        if (devices.isEmpty()) {
            return Finding.failure(
                    MODULES,
                    "RDMA is loaded, but there is no device",
                    "load the adapter's driver, or create a software device on any network interface: modprobe"
                            + " rdma_rxe && rdma link add rxe0 type rxe netdev eth0");
        }
        return Finding.ok(MODULES, "loaded; devices: " + String.join(", ", devices));
    }

    /** Whether this process may open the devices' nodes. */
    Finding nodes() {
        List<String> devices = files.names("sys/class/infiniband_verbs").stream()
                .filter(name -> name.startsWith("uverbs"))
                .toList();
        if (devices.isEmpty()) {
            return Finding.skipped(NODES, "there is no device");
        }
        List<String> nodes = new ArrayList<>(
                devices.stream().map(name -> "/dev/infiniband/" + name).toList());
        nodes.add("/dev/infiniband/rdma_cm");
        List<String> missing =
                nodes.stream().filter(node -> !files.exists(relative(node))).toList();
        List<String> refused = nodes.stream()
                .filter(node -> files.exists(relative(node)) && !files.isReadableAndWritable(relative(node)))
                .toList();
        if (!missing.isEmpty()) {
            return Finding.failure(
                    NODES,
                    "missing: " + String.join(", ", missing),
                    (files.isContainer() ? "" : "modprobe rdma_ucm ib_uverbs, and see that udev runs; ")
                            + IN_CONTAINERS);
        }
        if (!refused.isEmpty()) {
            return Finding.failure(
                    NODES,
                    "no access for " + System.getProperty("user.name") + ": " + String.join(", ", refused),
                    "give this user read and write permission (a udev rule or the group rdma); " + IN_CONTAINERS);
        }
        return Finding.ok(NODES, String.join(", ", nodes));
    }

    /** How much memory this process may register. */
    Finding lockedMemory() {
        Long limit = files.lockedMemoryLimitBytes();
        if (limit == null) {
            return Finding.skipped(MEMORY, "/proc/self/limits cannot be read");
        }
        String locked = files.status("VmLck");
        String evidence = "limit " + size(limit) + (locked.isEmpty() ? "" : ", locked now " + locked);
        if (files.mayLockAnyMemory()) {
            return Finding.ok(MEMORY, evidence + "; CAP_IPC_LOCK lifts it");
        }
        if (limit >= WANTED_LOCKED_BYTES) {
            return Finding.ok(MEMORY, evidence);
        }
        String remedy = files.isContainer()
                ? "--ulimit memlock=-1 for Docker and Podman; in Kubernetes the capability IPC_LOCK, or the limit of the"
                        + " container runtime's service (LimitMEMLOCK=infinity)"
                : "ulimit -l unlimited as root before the start, USER - memlock unlimited in"
                        + " /etc/security/limits.conf, or LimitMEMLOCK=infinity for a service";
        return limit < MIN_LOCKED_BYTES
                ? Finding.failure(MEMORY, evidence + ", without CAP_IPC_LOCK: registration will fail", remedy)
                : Finding.warning(
                        MEMORY,
                        evidence + ", without CAP_IPC_LOCK: the pools' default budget is " + size(WANTED_LOCKED_BYTES),
                        remedy);
    }

    private static String relative(String path) {
        return path.substring(1);
    }

    private static String size(long bytes) {
        return bytes == Long.MAX_VALUE ? "unlimited" : bytes / KIBIBYTE + " KiB";
    }
}
