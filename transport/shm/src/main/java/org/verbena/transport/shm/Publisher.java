package org.verbena.transport.shm;

import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.software.DirectAccess;
import org.verbena.transport.software.SoftwareMemory;

/**
 * Opens this side's memory to the peer of one connection, in the connection's table. A file is announced to the peer
 * when memory in it is to be opened for the first time; until it has mapped the file, this side accesses it for the
 * peer. Any thread.
 */
final class Publisher implements DirectAccess {
    private static final Logger LOG = LoggerFactory.getLogger(Publisher.class);

    private final SharedFiles files;
    private final RegionTable table;
    private final EventExecutor loop;
    private final Announcer announcer;

    /** How long a peer may be in the middle of a piece: far longer than the copy takes. */
    private static final long VISIT_NANOS = 1_000_000_000;

    /** Between two checks by the loop of whether a peer has left. */
    private static final int MILLIS_BETWEEN_CHECKS = 1;

    // Under the lock, as all that follows. Maps are made for the first, as most connections open no memory.

    /** What is open. */
    private Map<SoftwareMemory, Opening> entries = Collections.emptyMap();

    /** Memory that is closed while the peer is writing it, and when it was closed. */
    private Map<SoftwareMemory, Long> visits = Collections.emptyMap();

    /** The connection has ended: frees the table once nothing in it matters any more. */
    private @Nullable Runnable whenUnused;

    private Map<SharedFiles.Entry, Runnable> announced = Collections.emptyMap();
    private boolean closed;

    /** The table has had entries, or was searched, since its memory was given back. */
    private boolean isTableUsed;

    /** The same since the last tick. */
    private boolean isTableInUse;

    /** An entry of the table. */
    private record Opening(int number, boolean isWritable) {}

    /** Announces files to the peer; called on the loop. */
    interface Announcer {
        void announce(int number, int descriptor, long lengthBytes, boolean isWritable);

        void freed(int number);

        /** The peer is in the middle of writing memory that this side has closed, and does not finish. */
        void onStuck();
    }

    Publisher(SharedFiles files, RegionTable table, EventExecutor loop, Announcer announcer) {
        this.files = files;
        this.table = table;
        this.loop = loop;
        this.announcer = announcer;
    }

    @Override
    public synchronized boolean publish(SoftwareMemory memory) {
        // The peer that asks for the memory has just looked for it there, which made pages of the table.
        isTableUsed = true;
        isTableInUse = true;
        SharedFiles.Entry file = closed ? null : files.find(memory.address(), memory.lengthBytes());
        if (file == null) {
            return false;
        }
        if (!announced.containsKey(file)) {
            Runnable whenFreed = () -> onFreed(file);
            announced = with(announced, file, whenFreed);
            onLoop(() -> announcer.announce(file.number, file.file.descriptor(), file.lengthBytes, file.isWritable));
            file.whenFreed(whenFreed);
            return false;
        }
        int rights = rights(memory, file);
        int entry = table.add(
                memory.remoteKey(),
                file.number,
                memory.address(),
                memory.lengthBytes(),
                memory.address() - file.address,
                rights);
        if (entry >= 0) {
            entries = with(entries, memory, new Opening(entry, (rights & ~RegionTable.READ) != 0));
        }
        return entry >= 0;
    }

    private static <K, V> Map<K, V> with(Map<K, V> map, K key, V value) {
        Map<K, V> grown = map instanceof HashMap ? map : new HashMap<>();
        grown.put(key, value);
        return grown;
    }

    @Override
    public synchronized void withdraw(SoftwareMemory memory) {
        Opening entry = entries.remove(memory);
        if (entry != null) {
            remove(memory, entry);
        }
    }

    private void remove(SoftwareMemory memory, Opening entry) {
        table.remove(entry.number);
        if (entry.isWritable && table.isVisited(memory.remoteKey())) {
            visits = with(visits, memory, System.nanoTime());
        }
    }

    @Override
    public boolean isVisited(SoftwareMemory memory) {
        boolean isStuck;
        synchronized (this) {
            Long since = visits.get(memory);
            if (since == null) {
                return false;
            }
            isStuck = table.isVisited(memory.remoteKey());
            if (isStuck && System.nanoTime() - since < VISIT_NANOS && !loop.isShuttingDown()) {
                return true;
            }
            visits.remove(memory);
            freeUnused();
        }
        if (isStuck) {
            onLoop(announcer::onStuck);
        }
        return false;
    }

    /** Frees the table if the connection has ended and no visit in it is awaited. */
    private void freeUnused() {
        Runnable free = whenUnused;
        if (free != null && visits.isEmpty()) {
            whenUnused = null;
            free.run();
        }
    }

    @Override
    public void whenLeft(SoftwareMemory memory, Runnable action) {
        if (!isVisited(memory)) {
            action.run();
            return;
        }
        try {
            Future<?> next =
                    loop.schedule(() -> whenLeft(memory, action), MILLIS_BETWEEN_CHECKS, TimeUnit.MILLISECONDS);
            // A loop that ends cancels it, and nothing is waited for then. If it has ended by now, no listener runs.
            AtomicBoolean seen = new AtomicBoolean();
            Runnable ifCancelled = () -> {
                if (next.isCancelled() && seen.compareAndSet(false, true)) {
                    whenLeft(memory, action);
                }
            };
            next.addListener(done -> ifCancelled.run());
            ifCancelled.run();
        } catch (RejectedExecutionException ended) {
            whenLeft(memory, action);
        }
    }

    /** Time has passed: gives the table's memory back if nothing was opened meanwhile, and nothing is open. */
    synchronized void onTick() {
        boolean isIdle = !isTableInUse;
        isTableInUse = false;
        if (isTableUsed && isIdle && entries.isEmpty() && !closed) {
            isTableUsed = false;
            try {
                table.giveBack();
            } catch (IOException e) {
                LOG.debug("an idle connection keeps the pages of its table", e);
            }
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
            whenLeft(memory, () -> memory.forget(this));
        }
    }

    /**
     * The connection has ended, and its table goes.
     *
     * @param free frees it; run at once, or when the peer has left what it is writing
     */
    void close(Runnable free) {
        for (SoftwareMemory memory : takeAll(true)) {
            whenLeft(memory, () -> memory.forget(this));
        }
        synchronized (this) {
            whenUnused = free;
            freeUnused();
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
