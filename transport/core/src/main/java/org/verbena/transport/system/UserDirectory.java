package org.verbena.transport.system;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Directories in which the processes of one user meet, and which no other user may have made. Any thread. */
public final class UserDirectory {
    private static final Logger LOG = LoggerFactory.getLogger(UserDirectory.class);

    /** Only the owner may access it. */
    public static final FileAttribute<Set<PosixFilePermission>> PERMISSIONS =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

    private UserDirectory() {}

    /** Asked once: a process keeps its user. */
    private static final class User {
        static final @Nullable Integer ID = id();

        private User() {}

        /**
         * The user that this process acts as. Not the owner of /proc/self: that is root for a program with
         * capabilities. Source: proc_pid_status(5).
         */
        private static @Nullable Integer id() {
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

    /**
     * Where the user's processes meet: in {@code $XDG_RUNTIME_DIR}, or, if that is not set or is another user's, in
     * {@code java.io.tmpdir} with the user's number.
     *
     * @param name of the directory
     * @return its path, whether or not it is there
     */
    public static Path of(String name) {
        return of(name, System.getenv("XDG_RUNTIME_DIR"), System.getProperty("java.io.tmpdir", "/tmp"));
    }

    /** As {@link #of(String)}, with another environment. */
    public static Path of(String name, @Nullable String runtime, String temporary) {
        if (runtime != null && !runtime.isBlank() && Path.of(runtime).isAbsolute()) {
            Path folder = Path.of(runtime);
            if (Files.isDirectory(folder) && foreignOwner(folder) == null) {
                return folder.resolve(name);
            }
        }
        Integer uid = User.ID;
        String suffix = uid == null ? System.getProperty("user.name", "unknown") : uid.toString();
        return Path.of(temporary, name + "-" + suffix.replaceAll("[^A-Za-z0-9._-]", "_"));
    }

    /**
     * Makes a directory that only this user may open, if it is not there.
     *
     * @param path where
     * @return whether it was made now
     * @throws IOException it cannot be made, or is not what this user made
     */
    public static boolean make(Path path) throws IOException {
        try {
            if (hasPermissions(path)) {
                Files.createDirectory(path, PERMISSIONS);
            } else {
                Files.createDirectory(path);
            }
            return true;
        } catch (FileAlreadyExistsException before) {
            check(path);
            return false;
        }
    }

    /** Refuses what another user may have put there. */
    public static void check(Path path) throws IOException {
        if (Files.isSymbolicLink(path)) {
            throw new IOException(path + " is a symbolic link, which another user may have made: remove it");
        }
        if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException(path + " is not a directory: remove it");
        }
        String owner = foreignOwner(path);
        if (owner != null) {
            throw new IOException(path + " belongs to " + owner
                    + ", and only processes of one user can share it: have it" + " removed, or use another directory");
        }
    }

    /** Whether files there have POSIX permissions. */
    public static boolean hasPermissions(Path path) {
        return path.getFileSystem().supportedFileAttributeViews().contains("posix");
    }

    /** The owner of a file, if that is another user. */
    private static @Nullable String foreignOwner(Path file) {
        try {
            UserPrincipal owner = Files.getOwner(file, LinkOption.NOFOLLOW_LINKS);
            Integer uid = User.ID;
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
}
