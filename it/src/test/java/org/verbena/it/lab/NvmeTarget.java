package org.verbena.it.lab;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import org.verbena.transport.spi.Patience;

/**
 * The kernel's target of NVMe over Fabrics on RDMA, with one disk in memory. Source: drivers/nvme/target/configfs.c,
 * Documentation/block/null_blk.rst
 */
final class NvmeTarget implements AutoCloseable {
    static final int PORT = 4420;
    static final String NAME = "nqn.2026-11.org.verbena:disk";
    static final int DISK_MEBIBYTES = 16;

    private static final Path CONFIG = Path.of("/sys/kernel/config");

    /** The module has made nullb0, whose blocks are all zero. The next number is 1; newer kernels take it from here. */
    private static final String DISK = "nullb1";

    private final Path disk = Path.of("/dev", DISK);

    /** What undoes what was done, the last first. */
    private final Deque<Undo> undo = new ArrayDeque<>();

    private interface Undo {
        void run() throws IOException;
    }

    /**
     * Starts it.
     *
     * @param address where it listens
     */
    NvmeTarget(String address) throws IOException {
        Path targets = CONFIG.resolve("nvmet");
        if (!Files.exists(targets)) {
            PeerProgram.run(Patience.LIMIT, "mount", "-t", "configfs", "none", CONFIG.toString());
        }
        try {
            Path device = folder(CONFIG.resolve("nullb").resolve(DISK));
            write(device, "size", String.valueOf(DISK_MEBIBYTES));
            write(device, "blocksize", "512");
            write(device, "memory_backed", "1");
            onAndOff(device, "power");
            Path subsystem = folder(targets.resolve("subsystems").resolve(NAME));
            write(subsystem, "attr_allow_any_host", "1");
            Path namespace = folder(subsystem.resolve("namespaces/1"));
            write(namespace, "device_path", disk.toString());
            onAndOff(namespace, "enable");
            Path port = folder(targets.resolve("ports/1"));
            write(port, "addr_trtype", "rdma");
            write(port, "addr_adrfam", "ipv4");
            write(port, "addr_traddr", address);
            write(port, "addr_trsvcid", String.valueOf(PORT));
            Path listening = port.resolve("subsystems").resolve(NAME);
            Files.createSymbolicLink(listening, subsystem);
            undo.push(() -> Files.delete(listening));
        } catch (IOException | RuntimeException failed) {
            close();
            throw failed;
        }
    }

    /** The disk as the kernel's own users see it. */
    Path disk() {
        return disk;
    }

    private Path folder(Path folder) throws IOException {
        Files.createDirectory(folder);
        undo.push(() -> Files.delete(folder));
        return folder;
    }

    private void onAndOff(Path folder, String attribute) throws IOException {
        write(folder, attribute, "1");
        undo.push(() -> write(folder, attribute, "0"));
    }

    private static void write(Path folder, String attribute, String value) throws IOException {
        Files.writeString(folder.resolve(attribute), value);
    }

    @Override
    public void close() throws IOException {
        while (!undo.isEmpty()) {
            undo.pop().run();
        }
    }
}
