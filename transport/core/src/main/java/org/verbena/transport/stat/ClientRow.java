package org.verbena.transport.stat;

import java.lang.foreign.MemorySegment;
import java.util.function.Supplier;
import org.verbena.transport.ClientStatistics;

/** The row of one client of the short form. The thread that copies the rows asks the client for its figures. */
public final class ClientRow extends StatRow implements AutoCloseable {
    private final Supplier<ClientStatistics> figures;

    /** The figures of the last copy; the row is written only if they change. Confined to the thread that copies. */
    private ClientStatistics last = ClientStatistics.NONE;

    ClientRow(StatFile file, int index, MemorySegment memory, Supplier<ClientStatistics> figures) {
        super(file, index, memory);
        this.figures = figures;
        begin(row -> {});
    }

    /** The figures change: they are copied within a tenth of a second. Any thread. */
    public void changed() {
        file().wake();
    }

    void read() {
        ClientStatistics now = figures.get();
        if (now.equals(last)) {
            return;
        }
        last = now;
        change(row -> {
            long[] numbers = now.numbers();
            for (int i = 0; i < numbers.length; i++) {
                put(StatLayout.CLIENT_NUMBERS + (long) i * Long.BYTES, numbers[i]);
            }
            StatLayout.putText(row, StatLayout.CLIENT_TARGET, StatLayout.CLIENT_TARGET_BYTES, now.target());
            StatLayout.putText(row, StatLayout.CLIENT_STATE, StatLayout.WORD_BYTES, now.state());
            StatLayout.putText(row, StatLayout.CLIENT_FAILURE, StatLayout.CLIENT_FAILURE_BYTES, now.lastFailure());
        });
    }

    /** The client is closed; another may have the row. Idempotent. */
    @Override
    public void close() {
        if (endRow()) {
            file().freeClient(index());
        }
    }
}
