package org.verbena.transport.stat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ClientStatistics;

/**
 * The file of counters of a process, which {@code verbena stat} reads: a reader needs nothing from the process, which
 * need not even run. It is laid out here in the heap, and a {@link StatCopier} writes it, so that no loop ever touches
 * a file.
 *
 * <p>What it costs: a connection's counters stay where they are, and its loop copies them here at most ten times a
 * second while something happens on the loop, and once more after that. So a flush costs a comparison and a message
 * nothing; a copy is some 25 stores for each connection. Counters that lived here would cost each message bounds checks
 * instead, and only connections with a row would have them. Written at once are a loop's number of polls (a store for
 * each poll), whether it waits (a few stores and a read of the clock for each time that it blocks, which takes
 * microseconds), and the duration of a request (a load and a store; a client has read the clock already, a server reads
 * it). There is no lock, and nothing is allocated for a message. Connections that begin or end take a lock for a
 * moment.
 */
public final class StatFile {
    /** The system property that switches it off: {@code false}. */
    public static final String PROPERTY = "org.verbena.stat";

    /** The system property that sets how many connections have a row. */
    public static final String CONNECTIONS_PROPERTY = "org.verbena.stat.connections";

    /** More connections than a person reads; the file then has half a MiB. */
    private static final int DEFAULT_CONNECTIONS = 256;

    private static final Logger LOG = LoggerFactory.getLogger(StatFile.class);

    /** That of {@link Own}, once it is made: removing the file must not make one. */
    private static volatile @Nullable StatFile made;

    private final MemorySegment memory;
    private final StatCopier copier;

    // Guarded by this.
    private final BitSet loops = new BitSet();
    private final BitSet connections = new BitSet();
    private final int connectionRows;
    private final @Nullable ClientRow[] clients = new @Nullable ClientRow[StatLayout.CLIENTS];
    private int providers;
    private long open;
    private long withoutRow;
    private long endedTotal;

    private StatFile(int connectionRows, long pid) {
        this.connectionRows = connectionRows;
        // An array of long, because numbers are to be aligned.
        memory = MemorySegment.ofArray(new long[Math.toIntExact(StatLayout.fileBytes(connectionRows) / Long.BYTES)]);
        copier = new StatCopier(memory, connectionRows, this::readClients);
        writeHeader(pid);
    }

    /** Made when the first event loop is. */
    private static final class Own {
        static final @Nullable StatFile FILE = make();

        private static @Nullable StatFile make() {
            if (System.getProperty(PROPERTY, "true").strip().equalsIgnoreCase("false")) {
                LOG.debug("-D{}=false: verbena stat does not see this process", PROPERTY);
                return null;
            }
            try {
                long pid = ProcessHandle.current().pid();
                StatFile own = new StatFile(withinBounds(connectionRows()), pid);
                own.copier.start(StatDirectory.ofUser(), pid);
                made = own;
                return own;
            } catch (Throwable refused) {
                LOG.info("verbena stat will not see this process: {}", refused.toString());
                return null;
            }
        }
    }

    /** How many connections are to have a row. */
    static int connectionRows() {
        String wanted = System.getProperty(CONNECTIONS_PROPERTY);
        try {
            return wanted == null ? DEFAULT_CONNECTIONS : Integer.parseInt(wanted.strip());
        } catch (NumberFormatException malformed) {
            throw new IllegalArgumentException(
                    CONNECTIONS_PROPERTY + " is '" + wanted + "'; give a number to " + StatLayout.MAX_CONNECTIONS,
                    malformed);
        }
    }

    /**
     * The file of this process.
     *
     * @return null if it is switched off, or its properties are malformed, which was logged
     */
    public static @Nullable StatFile own() {
        return Own.FILE;
    }

    /** Removes the file of this process: for programs that end with {@link Runtime#halt}, which leaves it behind. */
    public static void removeOwn() {
        StatFile own = made;
        if (own != null) {
            own.copier.close();
        }
    }

    private static int withinBounds(int rows) {
        return Math.clamp(rows, 1, StatLayout.MAX_CONNECTIONS);
    }

    /**
     * Makes the file of this process, which {@link #copy} writes.
     *
     * @param connectionRows how many connections have a row; 1 to 65536, or the nearest of these
     */
    static StatFile create(StatDirectory directory, int connectionRows) throws IOException {
        long pid = ProcessHandle.current().pid();
        StatFile file = new StatFile(withinBounds(connectionRows), pid);
        file.copier.open(directory, pid);
        return file;
    }

    /** Writes what has changed since the last time. */
    void copy() throws IOException {
        copier.copy();
    }

    /** The figures change: they are copied to the file within a tenth of a second. Any thread. */
    void wake() {
        copier.wake();
    }

    private void writeHeader(long pid) {
        ProcessStart start = ProcessStart.of(pid);
        StatLayout.INT.set(memory, StatLayout.ORDER_AT, StatLayout.ORDER);
        StatLayout.INT.set(memory, StatLayout.VERSION_AT, StatLayout.VERSION);
        put(StatLayout.LENGTH, memory.byteSize());
        put(StatLayout.CONNECTION_ROWS, connectionRows);
        put(StatLayout.PID, pid);
        put(StatLayout.START_TICKS, start.ticks());
        put(StatLayout.START_MILLIS, start.millis());
        StatLayout.putText(memory, StatLayout.COMMAND, StatLayout.COMMAND_BYTES, mainClass());
        StatLayout.putText(
                memory, StatLayout.JAVA_VERSION, StatLayout.JAVA_VERSION_BYTES, System.getProperty("java.version"));
        StatLayout.LONG.setRelease(
                memory,
                0L,
                ByteBuffer.wrap(StatLayout.MAGIC)
                        .order(java.nio.ByteOrder.nativeOrder())
                        .getLong());
    }

    /** Only the class or jar: arguments may be secret. */
    private static String mainClass() {
        String command = System.getProperty("sun.java.command", "").strip();
        int end = command.indexOf(' ');
        return end < 0 ? command : command.substring(0, end);
    }

    private void put(long offset, long value) {
        StatLayout.LONG.setOpaque(memory, offset, value);
    }

    /**
     * A row for a loop.
     *
     * @return null if none is free
     */
    public synchronized @Nullable LoopRow newLoop() {
        int index = loops.nextClearBit(0);
        if (index >= StatLayout.LOOPS) {
            return null;
        }
        loops.set(index);
        return new LoopRow(
                this,
                index,
                memory.asSlice(StatLayout.LOOPS_AT + (long) index * StatLayout.LOOP_BYTES, StatLayout.LOOP_BYTES));
    }

    synchronized void freeLoop(int index) {
        loops.clear(index);
    }

    /**
     * A row for a provider.
     *
     * @param name of the provider
     * @param description of its devices
     * @return null if none is free
     */
    public synchronized @Nullable ProviderRow newProvider(String name, String description) {
        if (providers == StatLayout.PROVIDERS) {
            return null;
        }
        int index = providers++;
        return new ProviderRow(
                this,
                index,
                memory.asSlice(
                        StatLayout.PROVIDERS_AT + (long) index * StatLayout.PROVIDER_BYTES, StatLayout.PROVIDER_BYTES),
                name,
                description);
    }

    /**
     * A client of the short form has begun.
     *
     * @param figures it is asked for them each time that the file is written, on the thread that does
     * @return its row; null if none is free
     */
    public synchronized @Nullable ClientRow newClient(Supplier<ClientStatistics> figures) {
        for (int i = 0; i < clients.length; i++) {
            if (clients[i] == null) {
                long at = StatLayout.CLIENTS_AT + (long) i * StatLayout.CLIENT_BYTES;
                ClientRow row = new ClientRow(this, i, memory.asSlice(at, StatLayout.CLIENT_BYTES), figures);
                clients[i] = row;
                return row;
            }
        }
        return null;
    }

    synchronized void freeClient(int index) {
        clients[index] = null;
    }

    private void readClients() {
        List<ClientRow> all;
        synchronized (this) {
            all = Arrays.stream(clients).filter(Objects::nonNull).toList();
        }
        all.forEach(ClientRow::read);
    }

    /**
     * A connection has begun. The calling thread is its loop's.
     *
     * @param provider its provider's name
     * @param reason why that was chosen
     * @param role of this end
     * @param framing what a message is
     * @param nowNanos {@link System#nanoTime()}
     * @return its row; null if none is free: then it is only counted, until {@link #endedWithoutRow}
     */
    public synchronized @Nullable ConnectionRow newConnection(
            String provider, String reason, String role, String framing, long nowNanos) {
        put(StatLayout.OPEN, ++open);
        int index = connections.nextClearBit(0);
        if (index >= connectionRows) {
            put(StatLayout.WITHOUT_ROW, ++withoutRow);
            return null;
        }
        connections.set(index);
        return new ConnectionRow(
                this,
                index,
                memory.asSlice(
                        StatLayout.CONNECTIONS_AT + (long) index * StatLayout.CONNECTION_BYTES,
                        StatLayout.CONNECTION_BYTES),
                provider,
                reason,
                role,
                framing,
                nowNanos);
    }

    /** A connection that had no row has ended. Once for each. */
    public synchronized void endedWithoutRow() {
        put(StatLayout.WITHOUT_ROW, --withoutRow);
        put(StatLayout.OPEN, --open);
    }

    synchronized void freeConnection(int index) {
        connections.clear(index);
        put(StatLayout.OPEN, --open);
    }

    /**
     * A connection has ended with an error, or did not come up.
     *
     * @param provider its provider's name
     * @param local its address at this end
     * @param peer the other address
     * @param why the error
     */
    public synchronized void failed(String provider, @Nullable String local, @Nullable String peer, String why) {
        long index = endedTotal % StatLayout.ENDED;
        MemorySegment row =
                memory.asSlice(StatLayout.ENDED_AT + index * StatLayout.ENDED_BYTES, StatLayout.ENDED_BYTES);
        StatRow.change(row, into -> {
            StatLayout.LONG.setOpaque(into, StatLayout.IN_USE, 1L);
            StatLayout.LONG.setOpaque(into, StatLayout.ENDED_MILLIS, System.currentTimeMillis());
            StatLayout.putText(into, StatLayout.ENDED_LOCAL, StatLayout.ADDRESS_BYTES, local);
            StatLayout.putText(into, StatLayout.ENDED_PEER, StatLayout.ADDRESS_BYTES, peer);
            StatLayout.putText(into, StatLayout.ENDED_PROVIDER, StatLayout.NAME_BYTES, provider);
            StatLayout.putText(into, StatLayout.ENDED_WHY, StatLayout.ENDED_WHY_BYTES, why);
        });
        put(StatLayout.ENDED_TOTAL, ++endedTotal);
        wake();
    }
}
