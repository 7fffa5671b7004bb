package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;

/** Does reads of this side by copying from the peer's memory, where the peer has opened it. One thread. */
final class DirectReads {
    /** Copied between two looks at whether the memory is still open. */
    private static final int PIECE_BYTES = 256 << 10;

    private final RegionTable table;
    private final PeerFiles files;
    private final SendRing sends;
    private final Placement sink;

    DirectReads(RegionTable table, PeerFiles files, SendRing sends) {
        this.table = table;
        this.files = files;
        this.sends = sends;
        sink = new Placement(sends.maxSges());
    }

    /**
     * Copies a read, or the next piece of it.
     *
     * @param slot the read
     * @param from how much of it is there already
     * @return how much has been copied; -1 if the peer has to do it, from the beginning
     */
    int copy(int slot, int from) {
        int key = sends.remoteKey(slot);
        int total = sends.totalBytes(slot);
        long at = key == 0 ? -1 : table.find(key);
        if (at < 0) {
            return abandon();
        }
        MemorySegment file = files.find(table.file(at));
        long length = table.lengthBytes(at);
        long offset = table.offset(at);
        long start = sends.remoteAddress(slot) - table.address(at);
        if (file == null
                || length < 0
                || offset < 0
                || offset > file.byteSize() - length
                || start < 0
                || start > length - total) {
            return abandon();
        }
        if (!sink.isActive()) {
            sends.aim(slot, sink);
        }
        int bytes = Math.min(total - from, PIECE_BYTES);
        sink.place(file, offset + start + from, bytes);
        if (!table.isStill(at, key)) {
            return abandon();
        }
        if (from + bytes == total) {
            sink.end();
        }
        return bytes;
    }

    private int abandon() {
        close();
        return -1;
    }

    void close() {
        if (sink.isActive()) {
            sink.end();
        }
    }
}
