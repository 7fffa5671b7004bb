package org.verbena.transport.shm.ffm;

import java.io.IOException;
import java.nio.file.Path;
import org.verbena.transport.ffm.ErrnoException;

/**
 * The name of a file, and whether it still is that file's. The file's number is not given to another one as long as
 * this is open, so that nothing looks like it. Any thread.
 */
public final class HeldName implements AutoCloseable {
    private final String path;
    private final int descriptor;
    private final FileIdentity identity;
    private boolean closed;

    private HeldName(String path, int descriptor, FileIdentity identity) {
        this.path = path;
        this.descriptor = descriptor;
        this.identity = identity;
    }

    /**
     * Holds a file, which is not opened for reading or writing.
     *
     * @param path its name
     * @return open
     * @throws IOException there is none
     */
    public static HeldName of(Path path) throws IOException {
        String name = path.toString();
        int held = SystemCalls.open(SystemCalls.AT_FDCWD, name, SystemCalls.O_PATH, name);
        try {
            return new HeldName(name, held, SystemCalls.status(held, "", name).identity());
        } catch (IOException | RuntimeException | Error e) {
            SystemCalls.close(held);
            throw e;
        }
    }

    /**
     * Whether the name is there and still that of the file.
     *
     * @return false if it was removed, or is another file's
     */
    public synchronized boolean isIntact() {
        try {
            return !closed
                    && SystemCalls.status(SystemCalls.AT_FDCWD, path, path)
                            .identity()
                            .equals(identity);
        } catch (ErrnoException gone) {
            return false;
        }
    }

    /** Idempotent. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            SystemCalls.close(descriptor);
        }
    }
}
