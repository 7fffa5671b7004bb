package org.verbena.transport.soft;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.soft.uring.Ring;

/**
 * Reads a connection's socket for its parser: into the loop's buffer, or large payload straight into registered memory.
 * It keeps what the parser did not take until more has arrived. Not thread-safe; confined to the loop's thread.
 */
final class SocketReader {

    /** Payload still to come from which on the socket is read straight into registered memory. */
    static final int DIRECT_BYTES = 16 * 1024;

    /** What such a read takes beyond that payload: its trailer, and the next header. */
    private static final int DIRECT_TAIL_BYTES = 4 * 1024;

    /** Room for what is usually left: part of a header. */
    private static final int FIRST_CARRY_BYTES = 128;

    private final SoftSocket socket;
    private final SoftIoHandler io;
    private final FpduParser parser;
    private final SegmentSink sink;
    private final ByteBuffer[] direct = new ByteBuffer[2];

    /** What the parser did not take. */
    private byte @Nullable [] carry;

    private int carryBytes;
    private boolean filled;
    private long receivedBytes;

    /**
     * Nothing read yet.
     *
     * @param socket connected
     * @param parser is fed
     * @param sink whose end ends the reading
     */
    SocketReader(SoftSocket socket, FpduParser parser, SegmentSink sink) {
        this.socket = socket;
        this.parser = parser;
        this.sink = sink;
        io = socket.io();
    }

    /** Whether the last read took all it could, so that there may be more. */
    boolean hasMore() {
        return filled;
    }

    /** All bytes that came. */
    long receivedBytes() {
        return receivedBytes;
    }

    /** Whether the peer is in the middle of a segment. */
    boolean isInSegment() {
        return carryBytes > 0 || parser.isInSegment();
    }

    /** Whether the peer is in the middle of anything. */
    boolean isUnfinished() {
        return carryBytes > 0 || parser.isUnfinished();
    }

    /**
     * Reads the socket once and lets the parser handle what came.
     *
     * @return how many bytes came; -1 if the peer has ended the stream
     * @throws IOException the connection is broken
     */
    int readOnce() throws IOException {
        filled = false;
        ByteBuffer buffer = io.readBuffer().clear();
        int directBytes = parser.directBytes();
        if (directBytes >= DIRECT_BYTES && carryBytes == 0) {
            return readDirect(buffer, directBytes);
        }
        byte[] kept = carry;
        if (kept != null && carryBytes > 0) {
            buffer.put(kept, 0, carryBytes);
        }
        int max = parser.expectsPayloadOf(DIRECT_BYTES) ? DIRECT_TAIL_BYTES + directBytes : SoftIoHandler.READ_BYTES;
        buffer.limit(carryBytes + max);
        int count = socket.channel().read(buffer);
        filled = !buffer.hasRemaining();
        if (count <= 0) {
            return count;
        }
        receivedBytes += count;
        int end = buffer.position();
        carryBytes = 0;
        parse(buffer, io.readSegment(), 0, end);
        return count;
    }

    private int readDirect(ByteBuffer buffer, int directBytes) throws IOException {
        ByteBuffer room = parser.beginDirect();
        if (room == null) {
            return 0;
        }
        int roomBytes = room.remaining();
        int maxBytes = roomBytes;
        long count = 0;
        try {
            if (roomBytes < directBytes) {
                count = socket.channel().read(room);
            } else {
                direct[0] = room;
                direct[1] = buffer.limit(DIRECT_TAIL_BYTES);
                maxBytes += DIRECT_TAIL_BYTES;
                count = socket.channel().read(direct);
            }
        } finally {
            parser.endDirect(Math.clamp(count, 0, roomBytes));
        }
        filled = count == maxBytes;
        if (count <= 0) {
            return (int) count;
        }
        receivedBytes += count;
        parse(buffer, io.readSegment(), 0, (int) Math.max(0, count - roomBytes));
        return (int) count;
    }

    /**
     * Lets the parser handle what a ring has received, where it lies.
     *
     * @param buffer with the bytes, big-endian
     * @param segment the same memory
     * @param from where they begin; {@link Ring#HEADROOM_BYTES} are free in front
     * @param count how many
     */
    void feed(ByteBuffer buffer, MemorySegment segment, int from, int count) {
        receivedBytes += count;
        int before = carryBytes;
        byte[] kept = carry;
        carryBytes = 0;
        if (before == 0 || kept == null) {
            parse(buffer, segment, from, from + count);
        } else if (before <= Ring.HEADROOM_BYTES) {
            buffer.put(from - before, kept, 0, before);
            parse(buffer, segment, from - before, from + count);
        } else {
            ByteBuffer whole = io.readBuffer().clear().put(kept, 0, before).put(before, buffer, from, count);
            parse(whole, io.readSegment(), 0, before + count);
        }
    }

    /** Whether long payload comes, or is likely to, which should not be received into buffers. */
    boolean wantsDirect() {
        return parser.directBytes() >= DIRECT_BYTES || parser.expectsPayloadOf(DIRECT_BYTES);
    }

    private void parse(ByteBuffer buffer, MemorySegment segment, int at, int end) {
        // From here on the limit is for the buffer's own checks.
        buffer.clear();
        int from = parser.parse(buffer, segment, at, end);
        int left = end - from;
        if (left > 0 && sink.isOpen()) {
            byte[] keeping = carry;
            if (keeping == null || left > keeping.length) {
                keeping = new byte
                        [Math.max(FIRST_CARRY_BYTES, Math.min(Rdmap.MAX_FPDU_BYTES, Integer.highestOneBit(left) * 2))];
                carry = keeping;
            }
            buffer.get(from, keeping, 0, left);
            carryBytes = left;
        }
    }

    /** The connection has ended. */
    void close() {
        carryBytes = 0;
        carry = null;
        parser.close();
    }
}
