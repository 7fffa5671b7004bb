package org.verbena.transport.soft;

import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.RegionView;
import org.verbena.transport.software.SoftwareMemory;

/**
 * FPDUs that are being written to a socket: a staging buffer with headers, trailers and small payloads, and between its
 * spans the registered memory of large payloads, all given to the socket in one gathering write.
 *
 * <pre>{@code
 * staging  | header small trailer header | trailer header small trailer |
 *                                        ^
 * pieces   [ span                       ][ payload ][ span              ]
 * }</pre>
 *
 * <p>A loop has a few of these; an endpoint has one only while it has something to write. It holds whole FPDUs, so the
 * stream is at a boundary once what is left of it is taken. Not thread-safe; confined to the loop's thread.
 */
final class TxBatch {

    /** Room for the largest FPDU copied whole, as with CRC, and for many small ones. */
    static final int STAGING_BYTES = 160 * 1024;

    /** Enough for one write; what is left of it when a connection ends must be copied, so it is bounded. */
    static final int MAX_BYTES = 256 * 1024;

    /** Pieces of one write; Linux takes 1024. */
    private static final int MAX_PIECES = 512;

    private final ByteBuffer staging = ByteBuffer.allocateDirect(STAGING_BYTES);
    private final MemorySegment stagingSegment = MemorySegment.ofBuffer(staging);
    private final ByteBuffer checked = staging.duplicate();
    private final ByteBuffer[] pieces = new ByteBuffer[MAX_PIECES];
    private final @Nullable ByteBuffer[] spans = new @Nullable ByteBuffer[MAX_PIECES];
    private final @Nullable RegionView[] views = new @Nullable RegionView[MAX_PIECES];
    private final @Nullable SoftwareMemory[] guards = new @Nullable SoftwareMemory[MAX_PIECES];
    private int guardCount;
    private int pieceCount;
    private int firstUnwritten;
    private int spanStart;
    private int position;
    private long bytes;
    private long writtenBytes;

    /** Forgets what was written. */
    void reset() {
        for (int i = 0; i < pieceCount; i++) {
            RegionView view = views[i];
            if (view != null) {
                view.forgetIfClosed();
            }
        }
        for (int i = 0; i < guardCount; i++) {
            guards[i] = null;
        }
        guardCount = 0;
        pieceCount = 0;
        firstUnwritten = 0;
        spanStart = 0;
        position = 0;
        bytes = 0;
        writtenBytes = 0;
    }

    boolean isEmpty() {
        return bytes == 0;
    }

    /** All bytes it holds, written ones included. */
    long bytes() {
        return bytes;
    }

    /**
     * Whether another FPDU fits.
     *
     * @param stagedBytes what of it must be staged: header, trailer, copied payload
     * @param gatheredPieces pieces of payload that are not copied
     * @return true as well for anything, if the batch is empty
     */
    boolean hasRoom(int stagedBytes, int gatheredPieces) {
        return bytes < MAX_BYTES
                && position + stagedBytes <= STAGING_BYTES
                && pieceCount + gatheredPieces + 2 <= MAX_PIECES;
    }

    /** Where the next staged byte goes. */
    int position() {
        return position;
    }

    /** The staging buffer, big-endian, for absolute puts. */
    ByteBuffer staging() {
        return staging;
    }

    /**
     * Counts header bytes that were put at {@link #position()}.
     *
     * @param count how many
     */
    void staged(int count) {
        position += count;
        bytes += count;
    }

    /**
     * Copies payload into the staging buffer.
     *
     * @param from where it is
     * @param at from which offset
     * @param count how much
     */
    void copy(MemorySegment from, long at, int count) {
        MemorySegment.copy(from, at, stagingSegment, position, count);
        staged(count);
    }

    /**
     * Copies payload to where it will be once the header in front of it is staged. It is not counted.
     *
     * @param from where it is; its indices stay as they are
     * @param at from which index
     * @param count how much
     * @param headerBytes of the header
     */
    void copyBehind(int headerBytes, ByteBuf from, int at, int count) {
        int to = position + headerBytes;
        from.getBytes(at, checked.limit(to + count).position(to));
    }

    /**
     * Copies inline payload into the staging buffer.
     *
     * @param from where it is
     * @param at from which index
     * @param count how much
     */
    void copy(byte[] from, int at, int count) {
        staging.put(position, from, at, count);
        staged(count);
    }

    /**
     * Adds payload that stays where it is until it is written.
     *
     * @param memory its region
     * @param offset from the region's start
     * @param count how much, 1 or more
     * @param guarded whether nothing holds the region but its owner: then each write asks for access
     */
    void gather(SoftwareMemory memory, long offset, int count, boolean guarded) {
        closeSpan();
        RegionView view = views[pieceCount];
        if (view == null) {
            view = new RegionView();
            views[pieceCount] = view;
        }
        pieces[pieceCount++] = view.aim(memory, offset, count);
        bytes += count;
        if (guarded && (guardCount == 0 || guards[guardCount - 1] != memory)) {
            guards[guardCount++] = memory;
        }
    }

    /**
     * Ends an FPDU: pad, and CRC if there is one.
     *
     * @param trailerBytes 4 to 7
     * @param crc null without
     * @param from where the FPDU began in the staging buffer, all of which then is there
     */
    void trailer(int trailerBytes, @Nullable CRC32C crc, int from) {
        int at = position;
        // Eight bytes of zeros cover any pad and an absent CRC; what follows overwrites the rest.
        staging.putLong(at, 0);
        if (crc != null) {
            int end = at + trailerBytes - Rdmap.CRC_BYTES;
            crc.reset();
            crc.update(checked.limit(end).position(from));
            staging.putInt(end, Integer.reverseBytes((int) crc.getValue()));
        }
        staged(trailerBytes);
    }

    private void closeSpan() {
        if (position > spanStart) {
            ByteBuffer span = spans[pieceCount];
            if (span == null) {
                span = staging.duplicate();
                spans[pieceCount] = span;
            }
            pieces[pieceCount++] = span.limit(position).position(spanStart);
            spanStart = position;
        }
    }

    /**
     * Gives what is left to the socket.
     *
     * @param socket of the connection
     * @return bytes taken; -1 if a guarded region is gone, and the stream with it
     * @throws IOException the connection is broken
     */
    long write(SoftSocket socket) throws IOException {
        closeSpan();
        int entered = 0;
        try {
            while (entered < guardCount) {
                SoftwareMemory guard = guards[entered];
                if (guard == null || !guard.tryEnter()) {
                    return -1;
                }
                entered++;
            }
            long taken = socket.write(pieces, firstUnwritten, pieceCount - firstUnwritten);
            writtenBytes += taken;
            while (firstUnwritten < pieceCount && !pieces[firstUnwritten].hasRemaining()) {
                firstUnwritten++;
            }
            return taken;
        } finally {
            for (int i = 0; i < entered; i++) {
                SoftwareMemory guard = guards[i];
                if (guard != null) {
                    guard.exit();
                }
            }
        }
    }

    /** Whether the socket has taken nothing of it. */
    boolean isUntouched() {
        return writtenBytes == 0;
    }

    boolean isWritten() {
        return writtenBytes == bytes;
    }

    /**
     * Copies what is left, when the registered memory can no longer be held.
     *
     * @return a heap buffer; null if a guarded region is gone
     */
    @Nullable ByteBuffer copyOfRest() {
        closeSpan();
        int entered = 0;
        try {
            while (entered < guardCount) {
                SoftwareMemory guard = guards[entered];
                if (guard == null || !guard.tryEnter()) {
                    return null;
                }
                entered++;
            }
            ByteBuffer rest = ByteBuffer.allocate((int) (bytes - writtenBytes));
            for (int i = firstUnwritten; i < pieceCount; i++) {
                rest.put(pieces[i]);
            }
            return rest.flip();
        } finally {
            for (int i = 0; i < entered; i++) {
                SoftwareMemory guard = guards[i];
                if (guard != null) {
                    guard.exit();
                }
            }
        }
    }
}
