package org.verbena.transport.stat;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * A row of the file while something owns it. Each number has one writer, and is one store. Texts change within {@link
 * #change}, and the generation shows a reader that they did.
 */
abstract sealed class StatRow permits LoopRow, ProviderRow, ConnectionRow, ClientRow {
    private final StatFile file;
    private final int index;
    private final MemorySegment memory;
    private boolean ended; // guarded by this

    StatRow(StatFile file, int index, MemorySegment memory) {
        this.file = file;
        this.index = index;
        this.memory = memory;
    }

    /** Some texts and numbers of a row, to be written together. */
    interface Change {
        void to(MemorySegment row);
    }

    final StatFile file() {
        return file;
    }

    final int index() {
        return index;
    }

    final void put(long offset, long value) {
        StatLayout.LONG.setOpaque(memory, offset, value);
    }

    final long get(long offset) {
        return (long) StatLayout.LONG.getOpaque(memory, offset);
    }

    /** A row that is in use has another owner than before: what it counted is 0. */
    final void begin(Change change) {
        change(row -> {
            row.asSlice(StatLayout.IN_USE).fill((byte) 0);
            put(StatLayout.IN_USE, 1);
            change.to(row);
        });
    }

    /** Writes what a reader must not see half of. Any thread. No effect once the row has ended. */
    final void change(Change change) {
        synchronized (this) {
            if (!ended) {
                change(memory, change);
            }
        }
        file.wake();
    }

    static void change(MemorySegment row, Change change) {
        long generation = (long) StatLayout.LONG.getOpaque(row, StatLayout.GENERATION);
        StatLayout.LONG.setOpaque(row, StatLayout.GENERATION, generation + 1);
        VarHandle.storeStoreFence();
        change.to(row);
        StatLayout.LONG.setRelease(row, StatLayout.GENERATION, generation + 2);
    }

    final void changeText(long offset, int room, @Nullable String text) {
        change(row -> StatLayout.putText(row, offset, room, text));
    }

    /** Gives the row back. Returns whether it was still owned. */
    final boolean endRow() {
        synchronized (this) {
            if (ended) {
                return false;
            }
            change(memory, row -> put(StatLayout.IN_USE, 0));
            ended = true;
            file.wake();
            return true;
        }
    }
}
