package org.verbena.transport.stat;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where a user's processes have their files of counters: {@code $XDG_RUNTIME_DIR/verbena}, or where that is not set or
 * is another user's, {@code verbena-UID} in {@code java.io.tmpdir}. The directory has mode 0700 and each file, named
 * after its process's number, 0600. Any thread.
 */
public final class StatDirectory {
    private static final Logger LOG = LoggerFactory.getLogger(StatDirectory.class);

    private static final FileAttribute<Set<PosixFilePermission>> OF_DIRECTORY =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    private static final FileAttribute<Set<PosixFilePermission>> OF_FILE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

    /** A process's number. */
    private static final Pattern NAME = Pattern.compile("[1-9][0-9]{0,9}");

    private final Path path;
    private final boolean isOwn;

    private StatDirectory(Path path, boolean isOwn) {
        this.path = path;
        this.isOwn = isOwn;
    }

    /**
     * The directory of the user that runs this process.
     *
     * @return it, whether or not it is there
     */
    public static StatDirectory ofUser() {
        return ofUser(System.getenv("XDG_RUNTIME_DIR"), System.getProperty("java.io.tmpdir", "/tmp"));
    }

    static StatDirectory ofUser(@Nullable String runtime, String temporary) {
        if (runtime != null && !runtime.isBlank() && Path.of(runtime).isAbsolute()) {
            Path folder = Path.of(runtime);
            if (Files.isDirectory(folder) && foreignOwner(folder) == null) {
                return new StatDirectory(folder.resolve("verbena"), true);
            }
        }
        Integer uid = userId();
        String suffix = uid == null ? System.getProperty("user.name", "unknown") : uid.toString();
        return new StatDirectory(Path.of(temporary, "verbena-" + suffix.replaceAll("[^A-Za-z0-9._-]", "_")), true);
    }

    /**
     * Another directory, to be read only: nothing is removed from it.
     *
     * @param path that of another user, or of a container as this machine sees it
     * @return the directory
     */
    public static StatDirectory at(Path path) {
        return new StatDirectory(path, false);
    }

    /** As {@link #ofUser()}, elsewhere. */
    static StatDirectory ownAt(Path path) {
        return new StatDirectory(path, true);
    }

    /**
     * Where it is.
     *
     * @return its path
     */
    public Path path() {
        return path;
    }

    /**
     * The file of a process.
     *
     * @param pid the process's number
     * @return its path, whether or not it is there
     */
    public Path fileOf(long pid) {
        return path.resolve(Long.toString(pid));
    }

    /**
     * Makes it, if it is not there.
     *
     * @throws IOException it cannot be made, or is not what this user made: another user may have put it there
     */
    void prepare() throws IOException {
        boolean posix = hasPermissions();
        try {
            if (posix) {
                Files.createDirectory(path, OF_DIRECTORY);
            } else {
                Files.createDirectory(path);
            }
        } catch (FileAlreadyExistsException before) {
            check();
            if (posix) {
                Files.setPosixFilePermissions(path, OF_DIRECTORY.value());
            }
        }
    }

    /** Refuses what another user may have put there. */
    private void check() throws IOException {
        if (Files.isSymbolicLink(path)) {
            throw new IOException(path + " is a symbolic link, which another user may have made: remove it");
        }
        if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException(path + " is not a directory: remove it");
        }
        String owner = foreignOwner(path);
        if (owner != null) {
            throw new IOException(path + " belongs to " + owner + ": have it removed, or set XDG_RUNTIME_DIR");
        }
    }

    /** Makes a file for this user alone. */
    FileChannel create(Path file) throws IOException {
        Set<StandardOpenOption> options =
                Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE);
        return hasPermissions() ? FileChannel.open(file, options, OF_FILE) : FileChannel.open(file, options);
    }

    private boolean hasPermissions() {
        return path.getFileSystem().supportedFileAttributeViews().contains("posix");
    }

    /**
     * The processes that have a file here, whether or not they are alive.
     *
     * @return their numbers, in order
     * @throws IOException the directory cannot be read, or another user may have made it
     */
    public List<Long> pids() throws IOException {
        List<Long> pids = new ArrayList<>();
        if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
            return pids;
        }
        if (isOwn) {
            check();
        }
        try (DirectoryStream<Path> files = Files.newDirectoryStream(path)) {
            for (Path file : files) {
                String name = file.getFileName().toString();
                if (NAME.matcher(name).matches() && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
                    pids.add(Long.parseLong(name));
                }
            }
        }
        pids.sort(null);
        return pids;
    }

    /**
     * Removes the files of processes that are not there any more: those that were killed. A file that nobody can read
     * stays as long as there is a process of its number.
     *
     * @return how many were removed; always 0 for a directory that is only read
     * @throws IOException as {@link #pids} throws it
     */
    public int sweep() throws IOException {
        int removed = 0;
        if (!isOwn) {
            return removed;
        }
        for (long pid : pids()) {
            if (!isAlive(pid)) {
                try {
                    removed += Files.deleteIfExists(fileOf(pid)) ? 1 : 0;
                } catch (IOException stays) {
                    LOG.debug("{} is left over and stays", fileOf(pid), stays);
                }
            }
        }
        return removed;
    }

    /** Whether the process that made the file is there. */
    private boolean isAlive(long pid) {
        ProcessStart start = new ProcessStart(0, 0);
        try {
            start = StatReader.start(fileOf(pid));
        } catch (NoSuchFileException gone) {
            return false;
        } catch (IOException unreadable) {
            LOG.trace("{} does not say when its process began", fileOf(pid), unreadable);
        }
        return start.isAlive(pid);
    }

    /** Who owns it, if that is not this user; null also where the system does not say. */
    private static @Nullable String foreignOwner(Path file) {
        try {
            UserPrincipal owner = Files.getOwner(file, LinkOption.NOFOLLOW_LINKS);
            Integer uid = userId();
            if (uid != null) {
                return uid.equals(Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS))
                        ? null
                        : owner.getName();
            }
            UserPrincipal user = file.getFileSystem()
                    .getUserPrincipalLookupService()
                    .lookupPrincipalByName(System.getProperty("user.name"));
            return owner.equals(user) ? null : owner.getName();
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException unknown) {
            LOG.trace("the owner of {} is unknown", file, unknown);
            return null;
        }
    }

    /**
     * The user that this process acts as. Not the owner of /proc/self: that is root for a program with capabilities.
     * Source: proc_pid_status(5).
     */
    private static @Nullable Integer userId() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("Uid:")) {
                    return Integer.parseUnsignedInt(line.split("\\s+")[2]);
                }
            }
        } catch (IOException | RuntimeException notLinux) {
            LOG.trace("/proc does not say which user this is", notLinux);
        }
        return null;
    }
}
