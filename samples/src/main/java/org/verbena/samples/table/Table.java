package org.verbena.samples.table;

import java.nio.ByteBuffer;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.RemoteMemory;

/**
 * The table that {@code table-server} exposes: one counter, then rows of fixed length, in the server's memory.
 *
 * <pre>{@code
 *   0         64          64 + rowBytes
 *   | counter | row 0     | row 1     | ...
 * }</pre>
 *
 * @param memory where it is
 * @param rows how many
 * @param rowBytes how long each is
 */
public record Table(RemoteMemory memory, int rows, int rowBytes) {
    /** The counter has a cache line of its own. */
    static final int HEADER_BYTES = 64;

    static final long COUNTER_OFFSET = 0;

    public static long lengthBytes(int rows, int rowBytes) {
        return HEADER_BYTES + (long) rows * rowBytes;
    }

    long offsetOf(int row) {
        return HEADER_BYTES + (long) row * rowBytes;
    }

    /** The server's answer: the token, then two numbers. */
    byte[] encode() {
        return ByteBuffer.allocate(RemoteMemory.ENCODED_BYTES + 2 * Integer.BYTES)
                .put(memory.encode())
                .putInt(rows)
                .putInt(rowBytes)
                .array();
    }

    public static Table decode(byte[] bytes) {
        if (bytes.length != RemoteMemory.ENCODED_BYTES + 2 * Integer.BYTES) {
            throw new CommandFailure("the server's answer does not describe a table; is it a table-server?");
        }
        ByteBuffer in = ByteBuffer.wrap(bytes);
        byte[] token = new byte[RemoteMemory.ENCODED_BYTES];
        in.get(token);
        return new Table(RemoteMemory.decode(token), in.getInt(), in.getInt());
    }
}
