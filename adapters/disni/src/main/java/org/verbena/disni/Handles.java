package org.verbena.disni;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The objects that DiSNI knows by a number, which for its C library is the address of a struct. Here it is a row of a
 * table and a count, so that no number is given out twice: one that is stale or made up is found to be so, and nothing
 * is ever dereferenced.
 *
 * <pre>
 *    63   62                              24 23              0
 *   | 0 | which object of this row, from 1  |  row            |
 * </pre>
 *
 * <p>Any thread. Finding an object takes no lock and allocates nothing.
 */
final class Handles {
    private static final int ROW_BITS = 24;

    /** 16 million objects: more memory regions than any adapter has. */
    private static final int MAX_ROWS = 1 << ROW_BITS;

    private static final int FIRST_ROWS = 64;

    /** Replaced by a longer one when it is full. Written under this object's lock. */
    private volatile AtomicReferenceArray<@Nullable Handle> rows = new AtomicReferenceArray<>(FIRST_ROWS);

    /** Rows below {@link #used} that are empty. Guarded by this. */
    private final ArrayDeque<Integer> free = new ArrayDeque<>();

    /** How many rows have ever been in use. Guarded by this. */
    private int used;

    /** How many objects there have been. Guarded by this. */
    private long count;

    /** What could not be closed yet, since something depends on it. Guarded by itself. */
    private final List<Condemned> condemned = new ArrayList<>();

    /**
     * Gives an object a number.
     *
     * @throws IOException there are too many
     */
    synchronized Handle add(Object object) throws IOException {
        Integer empty = free.poll();
        int row = empty == null ? used : empty;
        if (row == MAX_ROWS) {
            throw new IOException(MAX_ROWS + " objects are open, which is all that there can be");
        }
        AtomicReferenceArray<@Nullable Handle> current = rows;
        if (row == current.length()) {
            AtomicReferenceArray<@Nullable Handle> longer = new AtomicReferenceArray<>(2 * row);
            for (int i = 0; i < row; i++) {
                longer.set(i, current.get(i));
            }
            rows = longer;
            current = longer;
        }
        used = Math.max(used, row + 1);
        Handle handle = new Handle(++count << ROW_BITS | row, object);
        current.set(row, handle);
        return handle;
    }

    /**
     * Finds an object.
     *
     * @param number as DiSNI passes it
     * @param type what it should be
     * @throws IOException it is not, or was closed
     */
    Handle get(long number, Class<?> type) throws IOException {
        Handle handle = find(number);
        if (handle == null || !type.isInstance(handle.object)) {
            throw new IOException("0x" + Long.toHexString(number) + " is no open " + type.getSimpleName()
                    + (handle == null
                            ? ""
                            : " but a " + handle.object.getClass().getSimpleName()));
        }
        return handle;
    }

    private @Nullable Handle find(long number) {
        AtomicReferenceArray<@Nullable Handle> current = rows;
        int row = (int) number & MAX_ROWS - 1;
        Handle handle = row < current.length() ? current.get(row) : null;
        return handle != null && handle.number == number ? handle : null;
    }

    /** Whether it can still be found. */
    boolean contains(Handle handle) {
        return find(handle.number) != null;
    }

    /**
     * Takes an object's number away, so that nobody finds it any more.
     *
     * @throws IOException another thread did
     */
    private synchronized void remove(Handle handle) throws IOException {
        if (!contains(handle)) {
            throw new IOException("0x" + Long.toHexString(handle.number) + " was closed by another thread");
        }
        int row = (int) handle.number & MAX_ROWS - 1;
        rows.set(row, null);
        free.add(row);
    }

    /**
     * Closes an object, after the calls about it that are under way. If others depend on it, it is closed after them:
     * DiSNI destroys a completion channel before its queue, and never asks again.
     *
     * @param closing does it; what it throws, other than {@link IllegalStateException} for an object that others depend
     *     on, is thrown on
     */
    void close(Handle handle, Closing closing) throws IOException {
        remove(handle);
        Condemned condemnedNow = new Condemned(handle, closing);
        try {
            condemnedNow.close();
        } catch (RuntimeException refused) {
            synchronized (condemned) {
                condemned.add(condemnedNow);
            }
            if (!(refused instanceof IllegalStateException)) {
                throw refused;
            }
        }
        synchronized (condemned) {
            while (condemned.removeIf(Condemned::isClosed)) {
                // What those depended on may be closed now.
            }
        }
    }

    /** Closes an object of Verbena's. */
    @FunctionalInterface
    interface Closing {
        void close();
    }

    /** An object that nobody finds any more. */
    private record Condemned(Handle handle, Closing closing) {
        void close() {
            handle.lock.lock();
            try {
                handle.receiveLock.lock();
                try {
                    closing.close();
                } finally {
                    handle.receiveLock.unlock();
                }
            } finally {
                handle.lock.unlock();
            }
        }

        boolean isClosed() {
            try {
                close();
                return true;
            } catch (RuntimeException stillInUse) {
                return false;
            }
        }
    }
}
