package org.verbena.tools.stat;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ClientStatistics;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.stat.ConnectionReading;
import org.verbena.transport.stat.EndedReading;
import org.verbena.transport.stat.LatencyHistogram;
import org.verbena.transport.stat.LoopReading;
import org.verbena.transport.stat.ProcessReading;
import org.verbena.transport.stat.ProviderReading;

/**
 * What {@code stat} prints about a process, from two readings of its file; the names are those of its JSON.
 *
 * @param pid its number
 * @param command its main class, or jar
 * @param javaVersion of its JVM
 * @param stopped whether a signal or a debugger has stopped it
 * @param startedMillis when it began, since 1970
 * @param intervalMillis the time between the readings
 * @param openConnections its connections
 * @param connectionsWithoutRow how many of these have no row
 * @param connectionRows how many rows there are
 * @param providers the providers of its connections
 * @param loops its event loops
 * @param connections its connections
 * @param clients its clients of the short form
 * @param failedConnections how many failed, so far
 * @param lastErrors the last of them, the latest first
 */
record Figures(
        long pid,
        String command,
        String javaVersion,
        boolean stopped,
        long startedMillis,
        long intervalMillis,
        long openConnections,
        long connectionsWithoutRow,
        int connectionRows,
        List<ProviderReading> providers,
        List<Loop> loops,
        List<Connection> connections,
        List<ClientStatistics> clients,
        long failedConnections,
        List<EndedReading> lastErrors) {
    private static final double NANOS_PER_SECOND = 1e9;
    private static final double NANOS_PER_MICRO = 1e3;
    private static final double PERCENT = 100;

    /** The state of a loop. */
    enum State {
        /** It has work to do. */
        RUNS,
        /** It has no work. */
        WAITS,
        /** It has something to do and makes no progress. */
        HANGS
    }

    /**
     * An event loop.
     *
     * @param name its thread's
     * @param provider its provider
     * @param state its state
     * @param pollsPerSecond how often it polled
     * @param completionsPerSecond completions that it found
     * @param spinPercent of the time that it spent polling without finding anything
     * @param lastTurnMillis how long ago it last woke, polled or began to wait
     */
    record Loop(
            String name,
            String provider,
            State state,
            double pollsPerSecond,
            double completionsPerSecond,
            double spinPercent,
            long lastTurnMillis) {}

    /**
     * A connection.
     *
     * @param label what the program calls the peer
     * @param queuedBytes what the program has handed over and has no outcome yet
     * @param missedBroadcasts messages to a group of clients that it has missed
     * @param waitingMillis how long messages have been waiting for credits, 0 if they are not
     * @param creditStalls waits for credits, so far
     * @param stalledPercent of the time between the readings in which messages waited for credits
     * @param requests how many have been answered, so far
     * @param p50Micros half of the requests between the readings took no longer; of all, if there were none
     * @param p99Micros likewise, 99 in a hundred
     * @param idleMillis since the last frame
     */
    record Connection(
            String peer,
            String label,
            String local,
            String provider,
            String why,
            String role,
            String framing,
            String phase,
            String loop,
            long window,
            long credits,
            long creditsGranted,
            long queuedBytes,
            long missedBroadcasts,
            long waitingMillis,
            long creditStalls,
            double stalledPercent,
            long slotStalls,
            long memoryStalls,
            long transferStalls,
            double messagesSentPerSecond,
            double messagesReceivedPerSecond,
            double bytesSentPerSecond,
            double bytesReceivedPerSecond,
            long messagesSent,
            long messagesReceived,
            long bytesSent,
            long bytesReceived,
            long rendezvousSent,
            long rendezvousReceived,
            long copiedBytes,
            long requests,
            double requestsPerSecond,
            double p50Micros,
            double p99Micros,
            long idleMillis,
            long errorMillis,
            String error) {}

    /**
     * Compares two readings of one process.
     *
     * @param hangNanos how long a loop with work may take for a cycle
     */
    static Figures of(ProcessReading earlier, ProcessReading now, long hangNanos) {
        long nanos = Math.max(1, now.takenNanos() - earlier.takenNanos());
        return new Figures(
                now.pid(),
                now.command(),
                now.javaVersion(),
                now.stopped(),
                now.startedMillis(),
                TimeUnit.NANOSECONDS.toMillis(nanos),
                now.openConnections(),
                now.connectionsWithoutRow(),
                now.connectionRows(),
                now.providers(),
                now.loops().stream()
                        .filter(loop -> !loop.name().isEmpty())
                        .map(loop -> of(before(earlier, loop), loop, nanos, now.takenNanos(), hangNanos))
                        .toList(),
                now.connections().stream()
                        .map(connection -> of(before(earlier, connection), connection, now, nanos))
                        .toList(),
                now.clients(),
                now.failedConnections(),
                now.lastErrors());
    }

    private static LoopReading before(ProcessReading earlier, LoopReading loop) {
        return earlier.loops().stream()
                .filter(one -> one.index() == loop.index() && one.threadId() == loop.threadId())
                .findAny()
                .orElse(loop);
    }

    private static @Nullable ConnectionReading before(ProcessReading earlier, ConnectionReading connection) {
        return earlier.connections().stream()
                .filter(connection::isSame)
                .findAny()
                .orElse(null);
    }

    private static Loop of(LoopReading earlier, LoopReading now, long nanos, long nowNanos, long hangNanos) {
        State state = now.running() ? State.RUNS : State.WAITS;
        return new Loop(
                now.name(),
                now.provider(),
                now.hangs(earlier, nowNanos, hangNanos) ? State.HANGS : state,
                perSecond(now.polls() - earlier.polls(), nanos),
                perSecond(now.completions() - earlier.completions(), nanos),
                percent(now.spinNanos() - earlier.spinNanos(), nanos),
                millisSince(now.lastTurnNanos(), nowNanos));
    }

    private static Connection of(
            @Nullable ConnectionReading earlier, ConnectionReading now, ProcessReading process, long nanos) {
        // What began between the readings started at 0.
        MessageStatistics is = now.counters();
        MessageStatistics was = earlier == null ? null : earlier.counters();
        LatencyHistogram since = earlier == null ? now.latency() : now.latency().minus(earlier.latency());
        LatencyHistogram shown = since.count() == 0 ? now.latency() : since;
        long takenNanos = process.takenNanos();
        long stalledBefore = earlier == null ? 0 : stalledNanos(earlier, takenNanos - nanos);
        return new Connection(
                now.peer(),
                now.label(),
                now.local(),
                now.provider(),
                now.reason(),
                now.role(),
                now.framing(),
                now.phase(),
                process.loops().stream()
                        .filter(loop -> loop.threadId() == now.threadId())
                        .map(LoopReading::name)
                        .findAny()
                        .orElse(""),
                now.peerWindow(),
                is.credits(),
                is.creditsGranted(),
                is.queuedBytes(),
                now.missedBroadcasts(),
                now.stalledSinceNanos() == 0 ? 0 : millisSince(now.stalledSinceNanos(), takenNanos),
                is.creditStalls(),
                percent(stalledNanos(now, takenNanos) - stalledBefore, nanos),
                is.slotStalls(),
                is.memoryStalls(),
                is.transferStalls(),
                perSecond(is.messagesSent() - (was == null ? 0 : was.messagesSent()), nanos),
                perSecond(is.messagesReceived() - (was == null ? 0 : was.messagesReceived()), nanos),
                perSecond(is.bytesSent() - (was == null ? 0 : was.bytesSent()), nanos),
                perSecond(is.bytesReceived() - (was == null ? 0 : was.bytesReceived()), nanos),
                is.messagesSent(),
                is.messagesReceived(),
                is.bytesSent(),
                is.bytesReceived(),
                is.rendezvousSent(),
                is.rendezvousReceived(),
                is.copiedBytes(),
                now.latency().count(),
                perSecond(since.count(), nanos),
                shown.percentileNanos(50) / NANOS_PER_MICRO,
                shown.percentileNanos(99) / NANOS_PER_MICRO,
                millisSince(now.lastActivityNanos(), takenNanos),
                now.errorMillis(),
                now.error());
    }

    /** The total so far, the current stall included. */
    private static long stalledNanos(ConnectionReading connection, long nowNanos) {
        long since = connection.stalledSinceNanos();
        return connection.counters().creditStallNanos() + (since == 0 ? 0 : Math.max(0, nowNanos - since));
    }

    private static double perSecond(long count, long nanos) {
        return Math.max(0, count) * NANOS_PER_SECOND / nanos;
    }

    private static double percent(long part, long nanos) {
        return Math.clamp(part * PERCENT / nanos, 0, PERCENT);
    }

    private static long millisSince(long thenNanos, long nowNanos) {
        return Math.max(0, TimeUnit.NANOSECONDS.toMillis(nowNanos - thenNanos));
    }
}
