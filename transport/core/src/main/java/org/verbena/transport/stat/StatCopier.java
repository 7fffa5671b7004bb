package org.verbena.transport.stat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies the counters of a process from its heap to its file, on a thread of its own: whatever happens to the file or
 * its file system delays or ends this thread and nothing else. A mapped file would be quicker, but truncating it would
 * end the event loops of the process (SIGBUS).
 *
 * <p>Ten times a second it writes the rows that have changed, each as it was at one time. After two rounds without a
 * change it sleeps until a loop {@linkplain #wake wakes} it, so an idle process stays idle. When the file cannot be
 * written any more, the thread logs why and ends.
 */
final class StatCopier {
    private static final Logger LOG = LoggerFactory.getLogger(StatCopier.class);

    /** As often as loops copy the counters of their connections. */
    private static final long PERIOD_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private static final int QUIET_ROUNDS = 2;

    private final MemorySegment live;
    private final int connectionRows;
    private final Runnable beforeCopy;

    // Confined to the thread.
    private final byte[] file;
    private final MemorySegment written;
    private final byte[] scratch = new byte[StatLayout.CONNECTION_BYTES];
    private final MemorySegment copy = MemorySegment.ofArray(scratch);
    private @Nullable FileChannel channel;

    /** Identifies the file, in case another one is given its name; null where files have no keys. */
    private volatile @Nullable Object key;

    /** Set by the thread before it is closed to other files. */
    private volatile @Nullable Path path;

    /** Nothing has changed for a while, and the thread waits to be woken. */
    private volatile boolean asleep;

    private volatile boolean closed;

    private volatile @Nullable Thread thread;

    /**
     * Prepares to copy.
     *
     * @param beforeCopy brings what is copied up to date, each time
     */
    StatCopier(MemorySegment live, int connectionRows, Runnable beforeCopy) {
        this.beforeCopy = beforeCopy;
        this.live = live;
        this.connectionRows = connectionRows;
        file = new byte[Math.toIntExact(live.byteSize())];
        written = MemorySegment.ofArray(file);
    }

    /** Begins to copy, on a thread of its own, which makes the file first. */
    void start(StatDirectory directory, long pid) {
        Thread copier = new Thread(() -> run(directory, pid), "verbena-stat");
        copier.setDaemon(true);
        copier.setContextClassLoader(null);
        thread = copier;
        copier.start();
    }

    private void run(StatDirectory directory, long pid) {
        try {
            directory.prepare();
            directory.sweep();
            open(directory, pid);
            Runtime.getRuntime().addShutdownHook(new Thread(this::close, "verbena-stat-remove"));
        } catch (Throwable refused) {
            LOG.info("verbena stat will not see this process: {}", refused.toString());
            close();
            return;
        }
        while (!closed) {
            try {
                copyUntilClosed();
            } catch (OutOfMemoryError forNow) {
                LOG.debug("figures for verbena stat are late", forNow);
            } catch (Throwable failed) {
                if (!closed) {
                    LOG.warn("verbena stat does not see this process any more: {}", failed.toString());
                    close();
                }
            }
        }
    }

    private void copyUntilClosed() throws IOException {
        int quiet = 0;
        while (!closed) {
            quiet = copy() ? 0 : quiet + 1;
            if (quiet >= QUIET_ROUNDS) {
                asleep = true;
                VarHandle.fullFence();
                if (copy()) { // in this order: what changes from now on wakes
                    asleep = false;
                }
                while (asleep && !closed) {
                    LockSupport.park(this);
                }
                quiet = 0;
            }
            LockSupport.parkNanos(this, PERIOD_NANOS);
        }
    }

    /** Something has changed. */
    void wake() {
        VarHandle.fullFence(); // store the change before reading the flag; the thread sets the flag and looks again
        if (asleep) {
            asleep = false;
            LockSupport.unpark(thread);
        }
    }

    /** Makes the file with its present content. The magic is written last. */
    void open(StatDirectory directory, long pid) throws IOException {
        Path made = createAlone(directory, pid);
        key = keyOf(made);
        path = made;
        MemorySegment.copy(live, 0, written, 0, live.byteSize());
        write(Long.BYTES, file.length - Long.BYTES);
        write(0, Long.BYTES);
    }

    private static @Nullable Object keyOf(Path path) throws IOException {
        return Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS)
                .fileKey();
    }

    /**
     * Makes and locks the file. Where a process of another PID namespace has the name, which is this process's number,
     * it is one that no process has.
     */
    private Path createAlone(StatDirectory directory, long pid) throws IOException {
        long number = pid;
        while (true) {
            Path made = directory.fileOf(number);
            try {
                FileChannel opened = directory.create(made);
                channel = opened;
                opened.tryLock(); // until it is closed, or this process ends
                return made;
            } catch (FileAlreadyExistsException before) {
                if (isOfThisProcess(made, pid)) {
                    throw new IOException(
                            made + " has the figures of the Verbena that another class loader of this process has"
                                    + " loaded",
                            before);
                }
                if (StatDirectory.isLocked(made)) {
                    number += StatDirectory.BEYOND_PIDS;
                } else {
                    Files.deleteIfExists(made); // left by an earlier process with the same number
                }
            }
        }
    }

    private static boolean isOfThisProcess(Path path, long pid) {
        try {
            ProcessStart start = StatReader.start(path);
            return start.ticks() != 0 && start.equals(ProcessStart.of(pid));
        } catch (IOException unreadable) {
            LOG.trace("{} does not say when its process began", path, unreadable);
            return false;
        }
    }

    /**
     * Writes what has changed.
     *
     * @return whether anything has, or could not be read because it was being changed
     * @throws IOException the file is gone or was replaced, is cut, or cannot be written
     */
    boolean copy() throws IOException {
        check();
        beforeCopy.run();
        boolean changed = false;
        if (differs(0, StatLayout.HEADER_BYTES)) {
            MemorySegment.copy(live, 0, written, 0, StatLayout.HEADER_BYTES);
            write(0, StatLayout.HEADER_BYTES);
            changed = true;
        }
        changed |= copyRows(StatLayout.LOOPS_AT, StatLayout.LOOPS, StatLayout.LOOP_BYTES);
        changed |= copyRows(StatLayout.PROVIDERS_AT, StatLayout.PROVIDERS, StatLayout.PROVIDER_BYTES);
        changed |= copyRows(StatLayout.ENDED_AT, StatLayout.ENDED, StatLayout.ENDED_BYTES);
        changed |= copyRows(StatLayout.CLIENTS_AT, StatLayout.CLIENTS, StatLayout.CLIENT_BYTES);
        changed |= copyRows(StatLayout.CONNECTIONS_AT, connectionRows, StatLayout.CONNECTION_BYTES);
        return changed;
    }

    private boolean copyRows(long at, int count, int rowBytes) throws IOException {
        if (!differs(at, (long) count * rowBytes)) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            long row = at + (long) i * rowBytes;
            if (differs(row, rowBytes) && tryCopyRow(row, rowBytes)) {
                write(row, rowBytes);
            }
        }
        return true;
    }

    /** Returns false if its texts are being changed: then it is copied in the next round. */
    private boolean tryCopyRow(long at, int bytes) {
        long generation = (long) StatLayout.LONG.getAcquire(live, at + StatLayout.GENERATION);
        MemorySegment.copy(live, at, copy, 0, bytes);
        VarHandle.loadLoadFence();
        if (generation % 2 != 0 || (long) StatLayout.LONG.getOpaque(live, at + StatLayout.GENERATION) != generation) {
            return false;
        }
        MemorySegment.copy(copy, 0, written, at, bytes);
        return true;
    }

    private boolean differs(long at, long bytes) {
        return MemorySegment.mismatch(live, at, at + bytes, written, at, at + bytes) >= 0;
    }

    private void check() throws IOException {
        FileChannel to = channel;
        Path where = path;
        if (to == null || where == null) {
            throw new IOException("there is no file");
        }
        try {
            if (!Objects.equals(keyOf(where), key)) {
                throw new IOException(where + " was replaced by another file");
            }
        } catch (NoSuchFileException gone) {
            throw new IOException(where + " was removed", gone);
        }
        if (to.size() < file.length) {
            throw new IOException(where + " was cut to " + to.size() + " bytes");
        }
    }

    private void write(long at, int bytes) throws IOException {
        FileChannel to = channel;
        if (to == null) {
            throw new IOException("there is no file");
        }
        ByteBuffer buffer = ByteBuffer.wrap(file, Math.toIntExact(at), bytes);
        for (long offset = at; buffer.hasRemaining(); ) {
            offset += to.write(buffer, offset);
        }
    }

    /** Removes the file, unless another one has its name: nothing is copied any more. Any thread; idempotent. */
    void close() {
        closed = true;
        Path where = path;
        try {
            FileChannel open = channel;
            if (open != null && Thread.currentThread().equals(thread)) {
                open.close();
            }
            if (where != null && Objects.equals(keyOf(where), key)) {
                Files.delete(where);
            }
        } catch (NoSuchFileException gone) {
            LOG.trace("{} was removed before", where, gone);
        } catch (IOException left) {
            LOG.debug("{} stays until the next verbena stat", where, left);
        }
        LockSupport.unpark(thread);
    }
}
