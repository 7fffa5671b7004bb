package org.verbena.transport.shm;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Servers whose sockets have lost their names, since the directory was cleaned up: the kernel knows them by the name
 * that they were bound to. Source: /proc/net/unix in proc_net(5), proc_pid_fd(5)
 */
final class NamelessSockets {
    private static final Logger LOG = LoggerFactory.getLogger(NamelessSockets.class);

    private static final Path SOCKETS = Path.of("/proc/net/unix");
    private static final Path PROCESSES = Path.of("/proc");

    /** {@code Num RefCount Protocol Flags Type St Inode Path}. */
    private static final int FIELDS = 8;

    private static final int FLAGS = 3;
    private static final int INODE = 6;
    private static final int PATH = 7;

    /** Of a socket that listens: {@code __SO_ACCEPTCON}. */
    private static final int LISTENS = 0x10000;

    private NamelessSockets() {}

    /**
     * Finds a process that listens.
     *
     * @param isName whether a socket's name is sought
     * @return its number; null if there is none that this process can see
     */
    static @Nullable String findProcess(Predicate<Path> isName) {
        Set<String> sought = new HashSet<>();
        try {
            for (String line : Files.readAllLines(SOCKETS)) {
                String[] fields = line.trim().split(" +", FIELDS);
                if (fields.length == FIELDS
                        && fields[PATH].startsWith("/")
                        && (Integer.parseUnsignedInt(fields[FLAGS], 16) & LISTENS) != 0
                        && isName.test(Path.of(fields[PATH]))) {
                    sought.add("socket:[" + fields[INODE] + "]");
                }
            }
        } catch (IOException | RuntimeException unreadable) {
            LOG.trace("{} cannot be read", SOCKETS, unreadable);
        }
        return sought.isEmpty() ? null : owner(sought);
    }

    /** A socket of the same name may be in another container, which has another directory: its process is not seen. */
    private static @Nullable String owner(Set<String> sockets) {
        for (Path process : list(PROCESSES, "[0-9]*")) {
            for (Path descriptor : list(process.resolve("fd"), "*")) {
                try {
                    if (sockets.contains(Files.readSymbolicLink(descriptor).toString())) {
                        return process.getFileName().toString();
                    }
                } catch (IOException closed) {
                    LOG.trace("{} is gone", descriptor, closed);
                }
            }
        }
        return null;
    }

    private static List<Path> list(Path directory, String names) {
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(directory, names)) {
            all.forEach(found::add);
        } catch (IOException | RuntimeException hidden) {
            LOG.trace("{} cannot be listed", directory, hidden);
        }
        return found;
    }
}
