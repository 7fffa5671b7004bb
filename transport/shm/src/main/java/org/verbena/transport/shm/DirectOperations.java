package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.spi.WorkRequest;

/**
 * Does reads, writes and atomics of this side in the peer's memory, where the peer has opened it. Not thread-safe;
 * confined to the loop's thread.
 */
final class DirectOperations {
    /** Copied between two checks of whether the memory is still open. */
    private static final int PIECE_BYTES = 256 << 10;

    private final RegionTable table;
    private final PeerFiles files;
    private final SendRing sends;
    private final Placement sink = new Placement();

    /** Where the request that was looked up is: its entry, its file and the offset there. */
    private long entry;

    private @Nullable PeerFile file;
    private long start;

    DirectOperations(RegionTable table, PeerFiles files, SendRing sends) {
        this.table = table;
        this.files = files;
        this.sends = sends;
    }

    /**
     * Does a request, or the next piece of it.
     *
     * @param slot a read, a write or an atomic of 1 byte or more
     * @param from how much of it is done already
     * @return how much has been done; -1 if the peer has to do it, from the beginning
     */
    int proceed(int slot, int from) {
        int bytes = switch (sends.opcode(slot)) {
            case READ -> read(slot, from);
            case WRITE, WRITE_WITH_IMMEDIATE -> write(slot, from);
            default -> atomic(slot);
        };
        file = null;
        if (bytes < 0) {
            close();
        }
        return bytes;
    }

    private boolean find(int slot, int right) {
        int key = sends.remoteKey(slot);
        entry = key == 0 ? -1 : table.find(key);
        if (entry < 0 || (table.rights(entry) & right) == 0) {
            return false;
        }
        PeerFile found = files.find(table.file(entry));
        long length = table.lengthBytes(entry);
        long offset = table.offset(entry);
        long within = sends.remoteAddress(slot) - table.address(entry);
        if (found == null
                || (right != RegionTable.READ && !found.isWritable)
                || length < 0
                || offset < 0
                || offset > found.lengthBytes - length
                || within < 0
                || within > length - sends.totalBytes(slot)) {
            return false;
        }
        file = found;
        start = offset + within;
        return true;
    }

    private PeerFile file() {
        PeerFile found = file;
        if (found == null) {
            throw new IllegalStateException("not found");
        }
        return found;
    }

    private int read(int slot, int from) {
        if (!find(slot, RegionTable.READ)) {
            return -1;
        }
        if (!sink.isActive()) {
            sends.aim(slot, sink);
        }
        int total = sends.totalBytes(slot);
        int bytes = Math.min(total - from, PIECE_BYTES);
        PeerFile with = file();
        MemorySegment memory = with.enter();
        if (memory == null) {
            return -1;
        }
        try {
            sink.place(memory, start + from, bytes);
        } finally {
            with.exit();
        }
        if (!table.isStill(entry, sends.remoteKey(slot))) {
            return -1;
        }
        if (from + bytes == total) {
            sink.end();
        }
        return bytes;
    }

    private int write(int slot, int from) {
        if (!find(slot, RegionTable.WRITE)) {
            return -1;
        }
        PeerFile with = file();
        // First, since mapping takes longer than an owner should have to wait for the visit to end.
        MemorySegment memory = with.enter();
        if (memory == null) {
            return -1;
        }
        try {
            if (!table.enter(entry, sends.remoteKey(slot))) {
                return -1;
            }
            try {
                int bytes = Math.min(sends.totalBytes(slot) - from, PIECE_BYTES);
                sends.copyTo(memory, start + from, slot, from, bytes);
                return bytes;
            } finally {
                table.exit();
            }
        } finally {
            with.exit();
        }
    }

    private int atomic(int slot) {
        if (!find(slot, RegionTable.ATOMIC) || (start & 7) != 0) {
            return -1;
        }
        PeerFile with = file();
        MemorySegment memory = with.enter();
        if (memory == null) {
            return -1;
        }
        long old;
        try {
            if (!table.enter(entry, sends.remoteKey(slot))) {
                return -1;
            }
            try {
                old = PeerAccess.atomic(
                        memory,
                        start,
                        sends.opcode(slot) == WorkRequest.Opcode.FETCH_AND_ADD,
                        sends.compareOrAdd(slot),
                        sends.swap(slot));
            } finally {
                table.exit();
            }
        } finally {
            with.exit();
        }
        sends.region(slot, 0).segment().set(ValueLayout.JAVA_LONG_UNALIGNED, sends.offset(slot, 0), old);
        return Long.BYTES;
    }

    void close() {
        if (sink.isActive()) {
            sink.end();
        }
    }
}
