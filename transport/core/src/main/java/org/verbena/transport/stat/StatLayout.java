package org.verbena.transport.stat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The file of counters, version 2; the writer and the reader use these offsets and no others. Numbers are 64 bits, in
 * the machine's byte order, at multiples of 8; times are nanoseconds of {@link System#nanoTime()}, which all JVMs of a
 * machine share, or milliseconds since 1970 where the name says so. A text is its length in bytes (32 bits) and that
 * much UTF-8, cut to fit.
 *
 * <pre>{@code
 * header                  4096 bytes
 * loops                   LOOPS times LOOP_BYTES
 * providers               PROVIDERS times PROVIDER_BYTES
 * ended                   ENDED times ENDED_BYTES: the last connections that ended with an error, a ring
 * clients                 CLIENTS times CLIENT_BYTES
 * connections             as many as the header says, times CONNECTION_BYTES
 *
 * header:  0 magic "VRBNSTAT"     8 order, 32 bits    12 version, 32 bits   16 length of the file
 *         24 rows for connections 32 pid              40 start, ticks       48 start, ms
 *         56 open connections     64 of these, without a row                72 ended with an error, total
 *        128 command (256)       384 Java's version (64)
 *
 * every row: 0 generation: odd while texts change, and another one for each owner      8 whether it is in use
 *
 * loop:       16 thread's number  24 state  32 polls  40 empty polls  48 completions  56 largest poll  64 nanos spent
 *             polling  72 last turn  80 thread's name (96)  176 provider (24)
 * provider:   16 registered bytes  24 open  32 begun  40 lost  48 plain open
 *             56 plain begun  64 name (24)  88 description (160)  248 requests that wait for a handler
 * ended:      16 when, ms  24 local (80)  104 peer (80)  184 provider (24)  208 why (304)
 * client:     16 the 7 numbers of ClientStatistics, in its order     80 target (120)  200 state (16)
 *            216 failure (296)
 * connection: 16 loop's thread  24 begun  32 last activity  40 peer's window  48 waits for credits since, or 0
 *             56 when its error was, ms  64 the 21 counters of MessageStatistics, in its order
 *            256 local (80)  336 peer (80)  416 provider (24)  440 role (16)  456 framing (16)  472 phase (16)
 *            488 why this provider (280)  768 error (256)  1024 the histogram's 112 buckets
 *           1920 label (64)  1984 broadcasts missed
 * }</pre>
 *
 * <p>The magic is written last, so a file that begins with it is complete. A writer that changes the layout changes the
 * version; a reader refuses versions that it does not know.
 */
final class StatLayout {
    static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    /** "VRBNSTAT", read in the machine's byte order. */
    static final byte[] MAGIC = "VRBNSTAT".getBytes(StandardCharsets.US_ASCII);

    static final int VERSION = 2;

    /** Reads as something else on a machine of the other byte order. */
    static final int ORDER = 0x01020304;

    static final int HEADER_BYTES = 4096;
    static final int LOOPS = 64;
    static final int LOOP_BYTES = 256;
    static final int PROVIDERS = 8;
    static final int PROVIDER_BYTES = 256;
    static final int ENDED = 16;
    static final int ENDED_BYTES = 512;
    static final int CLIENTS = 64;
    static final int CLIENT_BYTES = 512;
    static final int CONNECTION_BYTES = 2048;

    /** So that a reader of a wrong file does not ask for much memory: 128 MiB of rows. */
    static final int MAX_CONNECTIONS = 65_536;

    // The header.
    static final long ORDER_AT = 8;
    static final long VERSION_AT = 12;
    static final long LENGTH = 16;
    static final long CONNECTION_ROWS = 24;
    static final long PID = 32;
    static final long START_TICKS = 40;
    static final long START_MILLIS = 48;
    static final long OPEN = 56;
    static final long WITHOUT_ROW = 64;
    static final long ENDED_TOTAL = 72;
    static final long COMMAND = 128;
    static final int COMMAND_BYTES = 256;
    static final long JAVA_VERSION = 384;
    static final int JAVA_VERSION_BYTES = 64;

    // Every row.
    static final long GENERATION = 0;
    static final long IN_USE = 8;

    // A loop.
    static final long LOOP_THREAD = 16;
    static final long LOOP_STATE = 24;
    static final long LOOP_POLLS = 32;
    static final long LOOP_EMPTY_POLLS = 40;
    static final long LOOP_COMPLETIONS = 48;
    static final long LOOP_LARGEST_POLL = 56;
    static final long LOOP_SPIN_NANOS = 64;
    static final long LOOP_LAST_TURN = 72;
    static final long LOOP_NAME = 80;
    static final int LOOP_NAME_BYTES = 96;
    static final long LOOP_PROVIDER = 176;

    static final long RUNNING = 1;
    static final long WAITING = 2;

    // A provider.
    static final long PROVIDER_REGISTERED = 16;
    static final long PROVIDER_OPEN = 24;
    static final long PROVIDER_BEGUN = 32;
    static final long PROVIDER_LOST = 40;
    static final long PROVIDER_PLAIN_OPEN = 48;
    static final long PROVIDER_PLAIN_BEGUN = 56;
    static final long PROVIDER_NAME = 64;
    static final int NAME_BYTES = 24;
    static final long PROVIDER_DESCRIPTION = 88;
    static final int DESCRIPTION_BYTES = 160;
    static final long PROVIDER_WAITING = 248;

    // A connection that ended.
    static final long ENDED_MILLIS = 16;
    static final long ENDED_LOCAL = 24;
    static final int ADDRESS_BYTES = 80;
    static final long ENDED_PEER = 104;
    static final long ENDED_PROVIDER = 184;
    static final long ENDED_WHY = 208;
    static final int ENDED_WHY_BYTES = 304;

    // A client.
    static final long CLIENT_NUMBERS = 16;
    static final int CLIENT_NUMBER_COUNT = 7;
    static final long CLIENT_TARGET = 80;
    static final int CLIENT_TARGET_BYTES = 120;
    static final long CLIENT_STATE = 200;
    static final long CLIENT_FAILURE = 216;
    static final int CLIENT_FAILURE_BYTES = 296;

    // A connection.
    static final long THREAD = 16;
    static final long BEGUN = 24;
    static final long LAST_ACTIVITY = 32;
    static final long PEER_WINDOW = 40;
    static final long STALLED_SINCE = 48;
    static final long ERROR_MILLIS = 56;
    static final long COUNTERS = 64;
    static final int COUNTER_COUNT = 21;
    static final long LOCAL = 256;
    static final long PEER = 336;
    static final long PROVIDER = 416;
    static final long ROLE = 440;
    static final int WORD_BYTES = 16;
    static final long FRAMING = 456;
    static final long PHASE = 472;
    static final long REASON = 488;
    static final int REASON_BYTES = 280;
    static final long ERROR = 768;
    static final int ERROR_BYTES = 256;
    static final long BUCKETS = 1024;
    static final long LABEL = 1920;
    static final int LABEL_BYTES = 64;
    static final long MISSED = 1984;

    /** Where the loops' rows begin; the others follow. */
    static final long LOOPS_AT = HEADER_BYTES;

    static final long PROVIDERS_AT = LOOPS_AT + (long) LOOPS * LOOP_BYTES;
    static final long ENDED_AT = PROVIDERS_AT + (long) PROVIDERS * PROVIDER_BYTES;
    static final long CLIENTS_AT = ENDED_AT + (long) ENDED * ENDED_BYTES;
    static final long CONNECTIONS_AT = CLIENTS_AT + (long) CLIENTS * CLIENT_BYTES;

    private StatLayout() {}

    static long fileBytes(int connections) {
        return CONNECTIONS_AT + (long) connections * CONNECTION_BYTES;
    }

    /**
     * Writes a text.
     *
     * @param room for it, its length included; what does not fit is cut, at a character's end
     */
    static void putText(MemorySegment memory, long offset, int room, @Nullable String text) {
        byte[] bytes = (text == null ? "" : text).getBytes(StandardCharsets.UTF_8);
        int length = Math.min(bytes.length, room - Integer.BYTES);
        while (length < bytes.length && length > 0 && (bytes[length] & 0xC0) == 0x80) {
            length--;
        }
        memory.set(ValueLayout.JAVA_INT, offset, length);
        MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, offset + Integer.BYTES, length);
    }

    /** Reads a text, whatever its length claims, without characters that act on a terminal. */
    static String text(MemorySegment memory, long offset, int room) {
        int length = Math.clamp(memory.get(ValueLayout.JAVA_INT, offset), 0, room - Integer.BYTES);
        byte[] bytes = memory.asSlice(offset + Integer.BYTES, length).toArray(ValueLayout.JAVA_BYTE);
        StringBuilder text = new StringBuilder(new String(bytes, StandardCharsets.UTF_8));
        for (int i = 0; i < text.length(); i++) {
            if (Character.isISOControl(text.charAt(i))) {
                text.setCharAt(i, ' ');
            }
        }
        return text.toString();
    }
}
