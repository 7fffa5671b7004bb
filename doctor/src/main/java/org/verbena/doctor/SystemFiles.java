package org.verbena.doctor;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The kernel's files, below a root that tests replace.
 *
 * <p>Source: proc(5), sysfs(5)
 */
record SystemFiles(Path root) {
    static final SystemFiles REAL = new SystemFiles(Path.of("/"));

    private static final int CAP_IPC_LOCK = 14;
    private static final int HEXADECIMAL = 16;

    boolean exists(String path) {
        return Files.exists(at(path));
    }

    boolean isReadableAndWritable(String path) {
        return Files.isReadable(at(path)) && Files.isWritable(at(path));
    }

    /** The names in a folder, sorted; none if there is no such folder. */
    List<String> names(String folder) {
        List<String> names = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(at(folder))) {
            entries.forEach(entry -> names.add(entry.getFileName().toString()));
        } catch (IOException absent) {
            return List.of();
        }
        Collections.sort(names);
        return names;
    }

    /** The lines of a file; none if it cannot be read. */
    List<String> lines(String path) {
        try {
            return Files.readAllLines(at(path));
        } catch (IOException absent) {
            return List.of();
        }
    }

    /** The first line of a file, stripped; empty if it cannot be read. */
    String line(String path) {
        List<String> lines = lines(path);
        return lines.isEmpty() ? "" : lines.getFirst().strip();
    }

    /** Whether a module is loaded or built into the kernel. */
    boolean hasModule(String name) {
        return exists("sys/module/" + name);
    }

    /**
     * The limit on memory that this process may lock, in bytes.
     *
     * @return {@link Long#MAX_VALUE} if there is none, null if it is not known
     */
    @Nullable Long lockedMemoryLimitBytes() {
        String title = "Max locked memory";
        for (String line : lines("proc/self/limits")) {
            if (line.startsWith(title)) {
                String soft = line.substring(title.length()).strip().split("\\s+", 2)[0];
                return soft.equals("unlimited") ? Long.valueOf(Long.MAX_VALUE) : Long.valueOf(soft);
            }
        }
        return null;
    }

    /** Whether this process may lock memory over its limit. */
    boolean mayLockAnyMemory() {
        String value = status("CapEff");
        return !value.isEmpty() && (Long.parseUnsignedLong(value, HEXADECIMAL) >> CAP_IPC_LOCK & 1) != 0;
    }

    /** A value of this process in proc(5)'s status, empty if it is not there. */
    String status(String name) {
        for (String line : lines("proc/self/status")) {
            if (line.startsWith(name + ":")) {
                return line.substring(name.length() + 1).strip();
            }
        }
        return "";
    }

    /** Whether this process runs in a container, as far as the usual signs show. */
    boolean isContainer() {
        return exists(".dockerenv")
                || exists("run/.containerenv")
                || lines("proc/self/cgroup").stream()
                        .anyMatch(line -> line.contains("kubepods") || line.contains("docker"));
    }

    private Path at(String path) {
        return root.resolve(path);
    }
}
