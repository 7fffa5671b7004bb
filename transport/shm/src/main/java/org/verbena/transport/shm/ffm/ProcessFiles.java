package org.verbena.transport.shm.ffm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.verbena.transport.ffm.ErrnoException;
import org.verbena.transport.ffm.MappedMemory;

/**
 * The open files of a process of this user, by its directory in {@code /proc}. The directory is that of the process
 * even after its number was given to another one: then nothing is found in it.
 *
 * <p>Nothing here waits for the process. What it says of a file is not trusted: a descriptor may be a pipe, a device,
 * or a file of a file system that is a process itself (FUSE) and never answers. So its status is checked before it is
 * opened, and then that very file is opened.
 *
 * <p>Source: proc_pid_fd(5), openat(2) (O_PATH), pid_namespaces(7)
 */
public final class ProcessFiles implements AutoCloseable {
    private static final String FLAGS = "flags:";

    private final long pid;
    private final int directory;
    private boolean closed;

    private ProcessFiles(long pid, int directory) {
        this.pid = pid;
        this.directory = directory;
    }

    /** Asked once: a process stays in its PID namespace. */
    private static final class Namespace {
        static final long NUMBER = number();

        private static long number() {
            try {
                return SystemCalls.status(SystemCalls.AT_FDCWD, "/proc/self/ns/pid", "/proc/self/ns/pid")
                        .identity()
                        .inode();
            } catch (ErrnoException none) {
                return 0;
            }
        }
    }

    /**
     * The PID namespace of this process.
     *
     * @return its number, which no other has; 0 if it is not known
     */
    public static long pidNamespace() {
        return Namespace.NUMBER;
    }

    /**
     * Opens the directory of a process.
     *
     * @param pid the process
     * @return open
     * @throws IOException there is no such process, or it is another user's, or hides its files
     */
    public static ProcessFiles of(long pid) throws IOException {
        String path = "/proc/" + pid;
        int directory = SystemCalls.open(SystemCalls.AT_FDCWD, path, SystemCalls.O_PATH, path);
        ProcessFiles made = new ProcessFiles(pid, directory);
        try {
            int user = SystemCalls.status(directory, "", path).uid();
            int own = SystemCalls.effectiveUser();
            if (user != own) {
                throw new IOException("the process " + pid + " belongs to the user " + Integer.toUnsignedString(user)
                        + ", this one to " + Integer.toUnsignedString(own)
                        + " (or it is not dumpable); memory is shared within one user only");
            }
            return made;
        } catch (IOException | RuntimeException | Error refused) {
            made.close();
            throw refused;
        }
    }

    /**
     * Whether the process is still there.
     *
     * @return false if it has ended
     */
    public boolean isAlive() {
        try {
            return !closed && SystemCalls.status(directory, "fd", name("")) != null;
        } catch (ErrnoException ended) {
            return false;
        }
    }

    /**
     * Which file the process has open.
     *
     * @param descriptor its number there
     * @return the file
     * @throws IOException there is none, or the process has ended
     */
    public FileIdentity identify(int descriptor) throws IOException {
        return SystemCalls.status(directory, "fd/" + descriptor, name(descriptor))
                .identity();
    }

    /**
     * Whether the process has made a file, by {@link SharedFile#create}.
     *
     * @param descriptor its number there
     * @param file found there before
     * @return false if it is another file, or the process has opened it as another one's, by {@link #open}
     * @throws IOException there is none, or the process has ended
     */
    public boolean hasMade(int descriptor, FileIdentity file) throws IOException {
        return !isOpened(descriptor) && identify(descriptor).equals(file);
    }

    /**
     * Whether the process has opened a file as another one's, by {@link #open}.
     *
     * @param descriptor its number there
     * @param file that is to be found there
     * @return false if it is another file, or the process has made it
     * @throws IOException there is none, or the process has ended
     */
    public boolean hasOpened(int descriptor, FileIdentity file) throws IOException {
        return isOpened(descriptor) && identify(descriptor).equals(file);
    }

    /** By the flag that {@link #open} sets, and making a file does not. Source: proc_pid_fdinfo(5) */
    private boolean isOpened(int descriptor) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/fd/" + directory + "/fdinfo/" + descriptor))) {
            if (line.startsWith(FLAGS)) {
                return (Integer.parseInt(line.substring(FLAGS.length()).strip(), 8) & SystemCalls.O_NONBLOCK) != 0;
            }
        }
        throw new IOException("the kernel does not say how " + name(descriptor) + " was opened");
    }

    /**
     * Opens and maps a file that has exactly this size, and the seals that keep it so.
     *
     * @param descriptor its number there
     * @param lengthBytes the size that it has to have
     * @param isWritable whether to map it for writing
     * @return the file, open, of which this side owns the mapping
     * @throws IOException there is no such file, it is another one, or the kernel refuses
     */
    public SharedFile open(int descriptor, long lengthBytes, boolean isWritable) throws IOException {
        String name = name(descriptor);
        int found = SystemCalls.open(directory, "fd/" + descriptor, SystemCalls.O_PATH, name);
        int opened;
        try {
            SystemCalls.Status status = SystemCalls.status(found, "", name);
            if (!status.isRegular() || status.identity().device() != SharedFile.device()) {
                throw new IOException(name + " is not a file in memory");
            }
            opened = SystemCalls.open(
                    SystemCalls.AT_FDCWD,
                    "/proc/self/fd/" + found,
                    (isWritable ? SystemCalls.O_RDWR : SystemCalls.O_RDONLY) | SystemCalls.O_NONBLOCK,
                    name);
        } finally {
            SystemCalls.close(found);
        }
        try {
            int seals = SystemCalls.fcntl("F_GET_SEALS of " + name, opened, SystemCalls.F_GET_SEALS, 0);
            SystemCalls.Status status = SystemCalls.status(opened, "", name);
            if ((seals & SharedFile.FIXED_SIZE) != SharedFile.FIXED_SIZE || status.lengthBytes() != lengthBytes) {
                throw new IOException(name + " has " + status.lengthBytes() + " bytes and the seals 0x"
                        + Integer.toHexString(seals) + "; expected " + lengthBytes
                        + " bytes, and that they cannot change");
            }
            MemorySegment memory = MappedMemory.mapFile(opened, lengthBytes, isWritable);
            return new SharedFile(opened, memory, status.identity());
        } catch (IOException | RuntimeException | Error refused) {
            SystemCalls.close(opened);
            throw refused;
        }
    }

    private String name(Object descriptor) {
        return "/proc/" + pid + "/fd/" + descriptor;
    }

    /** Closes the directory. Idempotent. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            SystemCalls.close(directory);
        }
    }

    @Override
    public String toString() {
        return "files of the process " + pid;
    }
}
