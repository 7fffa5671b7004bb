package org.verbena.api.internal.client;

import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ClientStatistics;
import org.verbena.transport.stat.ClientRow;
import org.verbena.transport.stat.StatFile;

/** What a client counts, and where {@code verbena stat} reads it. Any thread. */
final class LinkFigures {
    final LongAdder connections = new LongAdder();
    final LongAdder failures = new LongAdder();
    final LongAdder retries = new LongAdder();
    final LongAdder hedges = new LongAdder();
    final LongAdder lateReplies = new LongAdder();
    private volatile @Nullable ClientRow row;

    /** Shows them from now on. */
    void show(Supplier<ClientStatistics> figures) {
        StatFile file = StatFile.own();
        row = file == null ? null : file.newClient(figures);
    }

    /** They are shown no more. */
    void hide() {
        ClientRow shown = row;
        if (shown != null) {
            shown.close();
        }
    }

    /** Something that is not counted here has changed. */
    void changed() {
        ClientRow shown = row;
        if (shown != null) {
            shown.changed();
        }
    }

    void count(LongAdder figure) {
        figure.increment();
        changed();
    }

    ClientStatistics with(String target, String state, @Nullable Throwable failure, long requests, long bytes) {
        return new ClientStatistics(
                target,
                state,
                failure == null ? "" : String.valueOf(failure.getMessage()),
                requests,
                bytes,
                connections.sum(),
                failures.sum(),
                retries.sum(),
                hedges.sum(),
                lateReplies.sum());
    }
}
