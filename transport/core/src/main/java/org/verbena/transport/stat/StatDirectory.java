package org.verbena.transport.stat;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.system.UserDirectory;

/**
 * Where a user's processes have their files of counters: {@code $XDG_RUNTIME_DIR/verbena}, or, if that is not set or is
 * another user's, {@code verbena-UID} in {@code java.io.tmpdir}. The directory has mode 0700 and each file, named after
 * its process's number, 0600. A process locks its file, which shows that it is there to processes of other PID
 * namespaces, whose numbers mean nothing to each other. Any thread.
 */
public final class StatDirectory {
    private static final Logger LOG = LoggerFactory.getLogger(StatDirectory.class);

    private static final FileAttribute<Set<PosixFilePermission>> OF_FILE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

    private static final String NAME_OF_DIRECTORY = "verbena";

    /** A process's number. */
    private static final Pattern NAME = Pattern.compile("[1-9][0-9]{0,9}");

    /** Added to the number of a process whose name is taken by one of another PID namespace: no PID is as large. */
    static final long BEYOND_PIDS = 10_000_000;

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
        return new StatDirectory(UserDirectory.of(NAME_OF_DIRECTORY), true);
    }

    static StatDirectory ofUser(@Nullable String runtime, String temporary) {
        return new StatDirectory(UserDirectory.of(NAME_OF_DIRECTORY, runtime, temporary), true);
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
        if (!UserDirectory.make(path) && UserDirectory.hasPermissions(path)) {
            Files.setPosixFilePermissions(path, UserDirectory.PERMISSIONS.value());
        }
    }

    /** Makes a file that only this user may open. */
    FileChannel create(Path file) throws IOException {
        Set<StandardOpenOption> options =
                Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE);
        return UserDirectory.hasPermissions(path)
                ? FileChannel.open(file, options, OF_FILE)
                : FileChannel.open(file, options);
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
            UserDirectory.check(path);
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
     * Removes the files of processes that are not there any more: those that were killed. A file that cannot be read
     * stays as long as there is a process with its number.
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
        // In this order: to close a file that this process has locked would unlock it.
        return start.isAlive(pid) || isLocked(fileOf(pid));
    }

    /** Whether the process that made a file holds its lock; false where files cannot be locked. */
    static boolean isLocked(Path file) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
            return channel.tryLock() == null;
        } catch (OverlappingFileLockException ofThisProcess) {
            return true;
        } catch (IOException unknown) {
            LOG.trace("{} cannot be locked", file, unknown);
            return false;
        }
    }
}
