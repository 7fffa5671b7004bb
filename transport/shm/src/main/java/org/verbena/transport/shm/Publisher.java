package org.verbena.transport.shm;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.verbena.transport.software.DirectAccess;
import org.verbena.transport.software.SoftwareMemory;
import org.verbena.transport.spi.MemoryDomain.Access;

/**
 * Opens this side's memory to the peer of one connection, in the connection's table. The peer is told of a file when
 * memory in it is to be opened for the first time; until it has mapped the file, this side accesses it for the peer. Any
 * thread.
 */
final class Publisher implements DirectAccess {
    private final SharedFiles files;
    private final RegionTable table;
    private final Executor loop;
    private final Announcer announcer;

    /** Under the lock, as all that follows: entries of the table. */
    private final Map<SoftwareMemory, Integer> entries = new HashMap<>();

    private final Map<SharedFiles.Entry, Runnable> announced = new HashMap<>();
    private boolean closed;

    /** Tells the peer of files; called on the loop. */
    interface Announcer {
        void announce(int number, int descriptor, long lengthBytes, boolean isWritable);

        void freed(int number);

        /** The peer is in the middle of writing memory that this side has closed, and does not finish. */
        void onStuck();
    }

    Publisher(SharedFiles files, RegionTable table, Executor loop, Announcer announcer) {
        this.files = files;
        this.table = table;
        this.loop = loop;
        this.announcer = announcer;
    }

    @Override
    public synchronized boolean publish(SoftwareMemory memory) {
        SharedFiles.Entry file = closed ? null : files.find(memory.address(), memory.lengthBytes());
        if (file == null) {
            return false;
        }
        if (!announced.containsKey(file)) {
            Runnable whenFreed = () -> onFreed(file);
            announced.put(file, whenFreed);
            onLoop(() -> announcer.announce(file.number, file.file.descriptor(), file.lengthBytes, file.isWritable));
            file.whenFreed(whenFreed);
            return false;
        }
        int entry = table.add(
                memory.remoteKey(),
                file.number,
                memory.address(),
                memory.lengthBytes(),
                memory.address() - file.address,
                rights(memory, file));
        if (entry >= 0) {
            entries.put(memory, entry);
        }
        return entry >= 0;
    }

    @Override
    public synchronized void withdraw(SoftwareMemory memory) {
        Integer entry = entries.remove(memory);
        if (entry != null) {
            remove(memory, entry);
        }
    }

    private void remove(SoftwareMemory memory, int entry) {
        if (!table.remove(entry, memory.remoteKey())) {
            onLoop(announcer::onStuck);
        }
    }

    private static int rights(SoftwareMemory memory, SharedFiles.Entry file) {
        int rights = memory.allows(Access.REMOTE_READ) ? RegionTable.READ : 0;
        if (file.isWritable) {
            rights |= memory.allows(Access.REMOTE_WRITE) ? RegionTable.WRITE : 0;
            rights |= memory.allows(Access.REMOTE_ATOMIC) ? RegionTable.ATOMIC : 0;
        }
        return rights;
    }

    /** The peer may use no memory any more, or not yet. */
    void withdrawAll() {
        for (SoftwareMemory memory : takeAll(false)) {
            memory.forget(this);
        }
    }

    /** The connection has ended, and its table goes. */
    void close() {
        for (SoftwareMemory memory : takeAll(true)) {
            memory.forget(this);
        }
    }

    private synchronized List<SoftwareMemory> takeAll(boolean end) {
        entries.forEach(this::remove);
        List<SoftwareMemory> all = List.copyOf(entries.keySet());
        entries.clear();
        if (end) {
            closed = true;
            announced.forEach(SharedFiles.Entry::forget);
            announced.clear();
        }
        return all;
    }

    private void onFreed(SharedFiles.Entry file) {
        synchronized (this) {
            if (announced.remove(file) == null) {
                return;
            }
        }
        onLoop(() -> announcer.freed(file.number));
    }

    private void onLoop(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException ended) {
            // And with it the connection.
        }
    }
}
