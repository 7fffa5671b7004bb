package org.verbena.transport.stat;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ClientStatistics;
import org.verbena.transport.MessageStatistics;

/**
 * Reads a file of counters. It trusts nothing in it: lengths are checked, and it reads the file rather than maps it,
 * since mapped memory of a file that is cut meanwhile cannot be accessed. A row whose owner or texts change while it is
 * read is read again.
 */
public final class StatReader {
    /** A row that changes all the time is not shown. */
    private static final int ATTEMPTS = 100;

    private final Path path;
    private final FileChannel channel;

    private StatReader(Path path, FileChannel channel) {
        this.path = path;
        this.channel = channel;
    }

    /**
     * Reads all of a file.
     *
     * @param path of the file
     * @return what the process has written so far; numbers may lag by a tenth of a second
     * @throws StatException the file is none of counters, is cut, or has another version
     * @throws IOException it cannot be read
     */
    public static ProcessReading read(Path path) throws IOException {
        try (FileChannel channel = open(path)) {
            return new StatReader(path, channel).readAll();
        }
    }

    /** When the process of the file began. */
    static ProcessStart start(Path path) throws IOException {
        try (FileChannel channel = open(path)) {
            return start(new StatReader(path, channel).header());
        }
    }

    private static ProcessStart start(MemorySegment header) {
        return new ProcessStart(number(header, StatLayout.START_TICKS), number(header, StatLayout.START_MILLIS));
    }

    private static FileChannel open(Path path) throws IOException {
        if (Files.exists(path, LinkOption.NOFOLLOW_LINKS) && !Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
            throw new StatException(path + " is not a regular file"); // opening a pipe would wait
        }
        return FileChannel.open(path, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS);
    }

    private MemorySegment bytes(long offset, int length) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocateDirect(length); // whose numbers are aligned
        while (buffer.hasRemaining()) {
            if (channel.read(buffer, offset + buffer.position()) < 0) {
                throw new EOFException(path + " ends within its first " + (offset + length) + " bytes");
            }
        }
        return MemorySegment.ofBuffer(buffer.flip());
    }

    private static long number(MemorySegment memory, long offset) {
        return (long) StatLayout.LONG.get(memory, offset);
    }

    private StatException wrong(String what) {
        return new StatException(path + " " + what);
    }

    private MemorySegment header() throws IOException {
        long size = channel.size();
        if (size < StatLayout.HEADER_BYTES) {
            throw wrong("is not a file of Verbena's counters: it has only " + size + " bytes");
        }
        MemorySegment header = bytes(0, StatLayout.HEADER_BYTES);
        byte[] magic = header.asSlice(0, StatLayout.MAGIC.length).toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
        if (!Arrays.equals(magic, StatLayout.MAGIC)) {
            throw wrong(
                    number(header, 0) == 0
                            ? "is not complete: its process is only starting, or ended while it did"
                            : "is not a file of Verbena's counters: it begins with something else");
        }
        int order = (int) StatLayout.INT.get(header, StatLayout.ORDER_AT);
        if (order != StatLayout.ORDER) {
            throw wrong(
                    Integer.reverseBytes(order) == StatLayout.ORDER
                            ? "was written on a machine of the other byte order than " + ByteOrder.nativeOrder()
                            : "is damaged: it has no byte order");
        }
        int version = (int) StatLayout.INT.get(header, StatLayout.VERSION_AT);
        if (version != StatLayout.VERSION) {
            throw wrong("has version " + version + " of the layout, and this command reads version "
                    + StatLayout.VERSION + ": use the command of the Verbena that the process runs");
        }
        long rows = number(header, StatLayout.CONNECTION_ROWS);
        if (rows < 1 || rows > StatLayout.MAX_CONNECTIONS) {
            throw wrong("is damaged: it claims rows for " + rows + " connections");
        }
        long expected = StatLayout.fileBytes((int) rows);
        if (number(header, StatLayout.LENGTH) != expected || size < expected) {
            throw wrong("is cut or damaged: it has " + size + " bytes, and " + expected + " are needed for " + rows
                    + " connections");
        }
        return header;
    }

    /** How a row becomes a reading. */
    private interface Decoder<T> {
        T of(int index, MemorySegment row);
    }

    private <T> List<T> rows(long at, int count, int rowBytes, Decoder<T> decoder) throws IOException {
        List<T> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            MemorySegment row = row(at + (long) i * rowBytes, rowBytes);
            if (row != null) {
                all.add(decoder.of(i, row));
            }
        }
        return all;
    }

    /** A row as it was at one time, or null if nothing owns it. */
    private @Nullable MemorySegment row(long at, int rowBytes) throws IOException {
        for (int i = 0; i < ATTEMPTS; i++) {
            // Read only the beginning first, since few rows have an owner.
            if (number(bytes(at, StatLayout.LOOP_BYTES), StatLayout.IN_USE) == 0) {
                return null;
            }
            MemorySegment row = bytes(at, rowBytes);
            long generation = number(row, StatLayout.GENERATION);
            boolean isSame = generation % 2 == 0 && number(bytes(at, Long.BYTES), StatLayout.GENERATION) == generation;
            if (isSame && number(row, StatLayout.IN_USE) != 0) {
                return row;
            }
        }
        return null;
    }

    private ProcessReading readAll() throws IOException {
        MemorySegment header = header();
        int connectionRows = (int) number(header, StatLayout.CONNECTION_ROWS);
        long pid = number(header, StatLayout.PID);
        List<EndedReading> ended = new ArrayList<>(
                rows(StatLayout.ENDED_AT, StatLayout.ENDED, StatLayout.ENDED_BYTES, (i, row) -> ended(row)));
        // Turn the ring so that the latest comes first.
        int newest = (int) Math.floorMod(number(header, StatLayout.ENDED_TOTAL) - 1, (long) StatLayout.ENDED);
        if (newest + 1 < ended.size()) {
            java.util.Collections.rotate(ended, -(newest + 1));
        }
        return new ProcessReading(
                pid,
                start(header).isAlive(pid),
                ProcessStart.isStopped(pid),
                StatLayout.text(header, StatLayout.COMMAND, StatLayout.COMMAND_BYTES),
                StatLayout.text(header, StatLayout.JAVA_VERSION, StatLayout.JAVA_VERSION_BYTES),
                number(header, StatLayout.START_MILLIS),
                System.nanoTime(),
                number(header, StatLayout.OPEN),
                number(header, StatLayout.WITHOUT_ROW),
                connectionRows,
                rows(
                        StatLayout.PROVIDERS_AT,
                        StatLayout.PROVIDERS,
                        StatLayout.PROVIDER_BYTES,
                        (i, row) -> provider(row)),
                rows(StatLayout.LOOPS_AT, StatLayout.LOOPS, StatLayout.LOOP_BYTES, StatReader::loop),
                rows(StatLayout.CONNECTIONS_AT, connectionRows, StatLayout.CONNECTION_BYTES, StatReader::connection),
                rows(StatLayout.CLIENTS_AT, StatLayout.CLIENTS, StatLayout.CLIENT_BYTES, (i, row) -> client(row)),
                number(header, StatLayout.ENDED_TOTAL),
                List.copyOf(ended.reversed()));
    }

    private static ProviderReading provider(MemorySegment row) {
        return new ProviderReading(
                StatLayout.text(row, StatLayout.PROVIDER_NAME, StatLayout.NAME_BYTES),
                StatLayout.text(row, StatLayout.PROVIDER_DESCRIPTION, StatLayout.DESCRIPTION_BYTES),
                number(row, StatLayout.PROVIDER_REGISTERED),
                number(row, StatLayout.PROVIDER_OPEN),
                number(row, StatLayout.PROVIDER_BEGUN),
                number(row, StatLayout.PROVIDER_LOST),
                number(row, StatLayout.PROVIDER_PLAIN_OPEN),
                number(row, StatLayout.PROVIDER_PLAIN_BEGUN),
                number(row, StatLayout.PROVIDER_WAITING));
    }

    private static LoopReading loop(int index, MemorySegment row) {
        return new LoopReading(
                index,
                number(row, StatLayout.LOOP_THREAD),
                StatLayout.text(row, StatLayout.LOOP_NAME, StatLayout.LOOP_NAME_BYTES),
                StatLayout.text(row, StatLayout.LOOP_PROVIDER, StatLayout.NAME_BYTES),
                number(row, StatLayout.LOOP_STATE) == StatLayout.RUNNING,
                number(row, StatLayout.LOOP_POLLS),
                number(row, StatLayout.LOOP_EMPTY_POLLS),
                number(row, StatLayout.LOOP_COMPLETIONS),
                number(row, StatLayout.LOOP_LARGEST_POLL),
                number(row, StatLayout.LOOP_SPIN_NANOS),
                number(row, StatLayout.LOOP_LAST_TURN));
    }

    private static EndedReading ended(MemorySegment row) {
        return new EndedReading(
                number(row, StatLayout.ENDED_MILLIS),
                StatLayout.text(row, StatLayout.ENDED_LOCAL, StatLayout.ADDRESS_BYTES),
                StatLayout.text(row, StatLayout.ENDED_PEER, StatLayout.ADDRESS_BYTES),
                StatLayout.text(row, StatLayout.ENDED_PROVIDER, StatLayout.NAME_BYTES),
                StatLayout.text(row, StatLayout.ENDED_WHY, StatLayout.ENDED_WHY_BYTES));
    }

    private static ConnectionReading connection(int index, MemorySegment row) {
        long[] buckets = numbers(row, StatLayout.BUCKETS, LatencyHistogram.BUCKETS);
        Arrays.setAll(buckets, i -> Math.max(0, buckets[i]));
        return new ConnectionReading(
                index,
                number(row, StatLayout.BEGUN),
                number(row, StatLayout.THREAD),
                StatLayout.text(row, StatLayout.LOCAL, StatLayout.ADDRESS_BYTES),
                StatLayout.text(row, StatLayout.PEER, StatLayout.ADDRESS_BYTES),
                StatLayout.text(row, StatLayout.PROVIDER, StatLayout.NAME_BYTES),
                StatLayout.text(row, StatLayout.REASON, StatLayout.REASON_BYTES),
                StatLayout.text(row, StatLayout.ROLE, StatLayout.WORD_BYTES),
                StatLayout.text(row, StatLayout.FRAMING, StatLayout.WORD_BYTES),
                StatLayout.text(row, StatLayout.PHASE, StatLayout.WORD_BYTES),
                number(row, StatLayout.PEER_WINDOW),
                number(row, StatLayout.STALLED_SINCE),
                number(row, StatLayout.LAST_ACTIVITY),
                number(row, StatLayout.ERROR_MILLIS),
                StatLayout.text(row, StatLayout.ERROR, StatLayout.ERROR_BYTES),
                StatLayout.text(row, StatLayout.LABEL, StatLayout.LABEL_BYTES),
                number(row, StatLayout.MISSED),
                MessageStatistics.of(numbers(row, StatLayout.COUNTERS, StatLayout.COUNTER_COUNT)),
                new LatencyHistogram(buckets));
    }

    private static long[] numbers(MemorySegment row, long at, int count) {
        long[] values = new long[count];
        for (int i = 0; i < values.length; i++) {
            values[i] = number(row, at + (long) i * Long.BYTES);
        }
        return values;
    }

    private static ClientStatistics client(MemorySegment row) {
        long[] numbers = numbers(row, StatLayout.CLIENT_NUMBERS, StatLayout.CLIENT_NUMBER_COUNT);
        return new ClientStatistics(
                StatLayout.text(row, StatLayout.CLIENT_TARGET, StatLayout.CLIENT_TARGET_BYTES),
                StatLayout.text(row, StatLayout.CLIENT_STATE, StatLayout.WORD_BYTES),
                StatLayout.text(row, StatLayout.CLIENT_FAILURE, StatLayout.CLIENT_FAILURE_BYTES),
                numbers[0],
                numbers[1],
                numbers[2],
                numbers[3],
                numbers[4],
                numbers[5],
                numbers[6]);
    }
}
