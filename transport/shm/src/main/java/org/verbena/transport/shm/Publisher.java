package org.verbena.transport.shm;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.verbena.transport.software.DirectAccess;
import org.verbena.transport.software.SoftwareMemory;

/**
 * Opens this side's memory to the peer of one connection, in the connection's table. The peer is told of a file when
 * memory in it is to be opened for the first time; until it has mapped the file, this side reads for it. Any thread.
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
        void announce(int number, int descriptor, long lengthBytes);

        void freed(int number);
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
            onLoop(() -> announcer.announce(file.number, file.file.descriptor(), file.lengthBytes));
            file.whenFreed(whenFreed);
            return false;
        }
        int entry = table.add(
                memory.remoteKey(),
                file.number,
                memory.address(),
                memory.lengthBytes(),
                memory.address() - file.address);
        if (entry >= 0) {
            entries.put(memory, entry);
        }
        return entry >= 0;
    }

    @Override
    public synchronized void withdraw(SoftwareMemory memory) {
        Integer entry = entries.remove(memory);
        if (entry != null) {
            table.remove(entry);
        }
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
        entries.values().forEach(table::remove);
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
