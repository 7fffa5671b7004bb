package org.verbena.api.internal.stat;

import io.netty.channel.EventLoop;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.stat.ConnectionRow;

/**
 * Copies the counters of a loop's connections to where {@code verbena stat} reads them, a tenth of a second after
 * activity on the loop. So a busy loop copies ten times a second, and an idle one only once more, when its figures are
 * final. Event loop only.
 */
public final class LoopStat implements Runnable {
    /** Often enough for people, and seldom enough to cost nothing: see {@code StatFile}. */
    private static final long PERIOD_MILLIS = 100;

    private final EventLoop loop;

    /** The connections that have a row. */
    private final List<ConnectionStat> connections = new ArrayList<>();

    private final long[] counters = new long[ConnectionRow.COUNTERS];
    private boolean scheduled;

    public LoopStat(EventLoop loop) {
        this.loop = loop;
    }

    void add0(ConnectionStat connection) {
        connections.add(connection);
        connection.copy0(counters, System.nanoTime());
    }

    void remove0(ConnectionStat connection) {
        connections.remove(connection);
    }

    /** The loop was active. Costs one comparison. */
    public void active0() {
        if (!scheduled && !connections.isEmpty()) {
            loop.schedule(this, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
            scheduled = true;
        }
    }

    /** The tenth of a second is over. */
    @Override
    public void run() {
        scheduled = false;
        long now = System.nanoTime();
        for (int i = 0; i < connections.size(); i++) {
            connections.get(i).copy0(counters, now);
        }
        if (!connections.isEmpty()) {
            connections.getFirst().account().copyMemory();
        }
    }
}
