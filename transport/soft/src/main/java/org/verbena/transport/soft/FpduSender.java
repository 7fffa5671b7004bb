package org.verbena.transport.soft;

import io.netty.buffer.ByteBuf;
import io.netty.channel.nio.NioIoOps;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.SoftwareMemory;
import org.verbena.transport.spi.WorkRequest;

/**
 * The sending half of a connection: makes messages out of the send queue and out of the peer's reads, cuts them into
 * FPDUs, and writes them. Messages of the two kinds take turns; the segments of one message stay together, as siw
 * expects. Not thread-safe; confined to the loop's thread.
 */
final class FpduSender {

    /**
     * Payload up to this length is copied next to its header. Beyond it an element of its own is cheaper, which costs
     * the JDK two atomic operations and 40 bytes of garbage to hold the arena during the system call, and the kernel
     * some work.
     */
    static final int COPY_BYTES = 4096;

    /** The longest message that is copied into a batch at once. */
    private static final int MAX_SENT_BYTES = 20 << 10;

    /** What one connection may write before others have their turn. */
    static final long BYTES_PER_TURN = 1024 * 1024;

    /** Linux's siw answers a read of up to this length with wrong bytes if it crosses one of its pages. */
    private static final int SHORT_READ_BYTES = 32;

    private static final int NO_MESSAGE = 0;
    private static final int SEND_MESSAGE = 1;
    private static final int RESPONSE_MESSAGE = 2;

    private final SoftSocket socket;
    private final SoftIoHandler io;
    private final SendRing ring;
    private final @Nullable CRC32C crc;

    private final InboundReads inbound;
    private final OutboundReads outbound;

    private int maxUlpduBytes = Rdmap.MAX_HEADER_BYTES + 64;

    /**
     * Whether a short read that crosses a page is requested page by page: it is, unless the peer uses this provider.
     */
    private boolean splitsShortReads;

    private @Nullable TxBatch batch;

    /** The batch has messages of {@link #trySend} and was not given to the socket yet. */
    private boolean filling;

    /** The position where the last of these messages ends. */
    private long copiedPosition;

    private long batchPosition;
    private long writtenPosition;

    private int nextSendNumber = 1;
    private int nextAtomicResponseNumber = 1;

    /** Whether FPDUs may go out: the accepting side waits for the first one of the other. */
    private boolean open;

    /** A ready-to-receive message to send before anything else. */
    private @Nullable ReadyMessage ready;

    /** Whether the send queue is no longer served: the connection is ending, and only responses still go out. */
    private boolean responsesOnly;

    private int current = NO_MESSAGE;
    private boolean responseTurn;

    /** The next request of the send queue, in progress if {@link #current} says so. */
    private long next;

    private int sentBytes;
    private int sge;
    private int sgeBytes;
    private boolean immediateSent;

    /** How the initiator of a peer-to-peer connection signals that it is ready. */
    enum ReadyMessage {
        /** A send without payload; consumes a receive of the peer. */
        SEND,
        /** A write without payload. */
        WRITE,
        /** A read without payload. */
        READ
    }

    /**
     * A sender with nothing to send.
     *
     * @param socket connected
     * @param ring the send queue
     * @param crc whether FPDUs have CRCs
     * @param outbound reads and atomics that wait for the peer
     * @param inbound reads and atomics of the peer
     */
    FpduSender(SoftSocket socket, SendRing ring, boolean crc, OutboundReads outbound, InboundReads inbound) {
        this.socket = socket;
        this.ring = ring;
        this.outbound = outbound;
        this.inbound = inbound;
        io = socket.io();
        this.crc = crc ? io.crc() : null;
    }

    /**
     * How long segments may be, once the peer is known.
     *
     * @param bytes the most in a length field
     */
    void setMaxUlpduBytes(int bytes) {
        maxUlpduBytes = bytes;
    }

    /** The peer may be siw, so short reads that cross one of its pages are requested page by page. */
    void splitShortReads() {
        splitsShortReads = true;
    }

    /** FPDUs may go out from now on. */
    void open() {
        open = true;
    }

    /**
     * The first message, before anything else.
     *
     * @param message which
     */
    void sayReady(ReadyMessage message) {
        ready = message;
    }

    /** Whether the request at the head is done. */
    boolean isHeadDone() {
        if (ring.isEmpty() || ring.head() >= next) {
            return false;
        }
        int slot = ring.slot(ring.head());
        return ring.endPosition(slot) <= writtenPosition && (!ring.isAnsweredByPeer(slot) || ring.isAnswered(slot));
    }

    /** Whether there is anything that could be written now. */
    boolean hasWork() {
        return batch != null || (open && (ready != null || !inbound.isEmpty() || canSend()));
    }

    /** Whether bytes wait for the socket. */
    boolean isBlocked() {
        return batch != null && !filling;
    }

    /** Whether bytes that the socket has taken are not with TCP yet. */
    boolean isSending() {
        return socket.isSending();
    }

    /** A number that changes with each of these times. */
    long sends() {
        return socket.sends();
    }

    /** Bytes of the stream that the socket has taken. */
    long writtenPosition() {
        return writtenPosition;
    }

    /**
     * The request that a message of ours belongs to.
     *
     * @param queue its DDP queue number
     * @param number its message sequence number
     * @return its sequence number; -1 if it is no longer in the send queue
     */
    long sequenceOf(int queue, int number) {
        for (long s = ring.head(); s < next; s++) {
            int slot = ring.slot(s);
            boolean read = ring.isAnsweredByPeer(slot);
            boolean write = ring.opcode(slot) == WorkRequest.Opcode.WRITE;
            int part = number - ring.messageNumber(slot);
            if (!write && read == (queue == Rdmap.QUEUE_READ_REQUEST) && part >= 0 && part < partsOf(slot)) {
                return s;
            }
        }
        return -1;
    }

    /**
     * The write that names a key of the peer.
     *
     * @param key the key
     * @param address within the write
     * @return its sequence number; -1 if it is no longer in the send queue
     */
    long sequenceOfWrite(int key, long address) {
        for (long s = ring.head(); s < ring.tail() && s <= next; s++) {
            int slot = ring.slot(s);
            WorkRequest.Opcode opcode = ring.opcode(slot);
            boolean write = opcode == WorkRequest.Opcode.WRITE || opcode == WorkRequest.Opcode.WRITE_WITH_IMMEDIATE;
            long offset = address - ring.remoteAddress(slot);
            if (write && ring.remoteKey(slot) == key && offset >= 0 && offset < Math.max(1, ring.totalBytes(slot))) {
                return s;
            }
        }
        return -1;
    }

    private boolean canSend() {
        if (responsesOnly || next == ring.tail()) {
            return false;
        }
        if (current == SEND_MESSAGE) {
            return true;
        }
        int slot = ring.slot(next);
        if (ring.has(slot, WorkRequest.FENCE) && outbound.awaitsResponse()) {
            return false;
        }
        return !ring.isAnsweredByPeer(slot) || outbound.hasRoom(partsOf(slot));
    }

    /** How many requests a request of the send queue makes on the wire. */
    private int partsOf(int slot) {
        if (!splitsShortReads || outbound.depth() < 2 || ring.opcode(slot) != WorkRequest.Opcode.READ) {
            return 1;
        }
        int bytes = ring.totalBytes(slot);
        return bytes <= SHORT_READ_BYTES && bytes > OutboundReads.bytesOfPageFrom(ring.remoteAddress(slot)) ? 2 : 1;
    }

    /**
     * Puts a message that is in no queue into the next batch, if nothing has to go before it and it fits into one
     * segment. {@link #pump} writes it.
     *
     * @return false if nothing was done
     */
    boolean trySend(long first, long second, ByteBuf rest, int index, int restBytes) {
        int payload = 2 * Long.BYTES + restBytes;
        if (isBlocked()
                || !open
                || responsesOnly
                || ready != null
                || current != NO_MESSAGE
                || next != ring.tail()
                || !inbound.isEmpty()
                || payload > Math.min(MAX_SENT_BYTES, maxUlpduBytes - Rdmap.UNTAGGED_HEADER_BYTES + 2)) {
            return false;
        }
        TxBatch to = batch;
        if (to == null) {
            to = io.takeToFill();
            if (to == null) {
                return false;
            }
            batch = to;
            filling = true;
            batchPosition = writtenPosition;
        }
        if (!to.hasRoom(Rdmap.UNTAGGED_HEADER_BYTES + payload + Rdmap.MAX_TRAILER_BYTES + 1, 0)) {
            return false;
        }
        try {
            to.copyBehind(Rdmap.UNTAGGED_HEADER_BYTES + 2 * Long.BYTES, rest, index, restBytes);
        } catch (RuntimeException e) {
            if (to.isEmpty()) {
                dropBatch(); // no flush will come for it
            }
            throw e;
        }
        int from = to.position();
        int ulpdu = Rdmap.UNTAGGED_HEADER_BYTES - 2 + payload;
        untagged(to, ulpdu, Rdmap.SEND, true, 0, Rdmap.QUEUE_SEND, nextSendNumber++, 0);
        to.staging().putLong(to.position(), first).putLong(to.position() + Long.BYTES, second);
        to.staged(payload);
        to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
        copiedPosition = batchPosition + to.bytes();
        return true;
    }

    /** Whether the socket has taken all of them. */
    boolean hasSentCopies() {
        return writtenPosition >= copiedPosition;
    }

    /**
     * Writes what there is, as far as the socket takes it and the turn's share allows.
     *
     * @return whether there is more to write now, in another turn
     * @throws IOException the connection is broken
     * @throws RegionGoneException a region that the peer is reading was deregistered in the middle of a segment
     */
    boolean pump() throws IOException, RegionGoneException {
        long budget = BYTES_PER_TURN;
        while (true) {
            TxBatch now = batch;
            if (now == null || filling) {
                if (!open || !hasWork()) {
                    return false;
                }
                if (now == null) {
                    now = io.takeBatch();
                    batch = now;
                    batchPosition = writtenPosition;
                }
                endFilling();
                fill(now);
                if (now.isEmpty()) {
                    dropBatch();
                    return false;
                }
            }
            long taken = now.write(socket);
            if (taken < 0 && now.isUntouched()) {
                // The stream is between two FPDUs: it can still say why it ends.
                dropBatch();
                throw refusedResponse();
            }
            if (taken < 0) {
                throw new RegionGoneException();
            }
            writtenPosition += taken;
            if (!now.isWritten()) {
                socket.await(NioIoOps.READ_AND_WRITE);
                return false;
            }
            dropBatch();
            socket.await(NioIoOps.READ);
            budget -= taken;
            if (budget <= 0) {
                return hasWork();
            }
        }
    }

    private void dropBatch() {
        TxBatch now = batch;
        if (now != null) {
            batch = null;
            endFilling();
            io.returnBatch(now);
        }
    }

    private void endFilling() {
        if (filling) {
            filling = false;
            io.filled();
        }
    }

    /** From now on only serves the peer's reads. */
    void stopSending() {
        responsesOnly = true;
        ready = null;
        if (filling) {
            dropBatch(); // nobody has flushed what is in it
        }
        if (current == SEND_MESSAGE) {
            current = NO_MESSAGE;
        }
    }

    /** Forgets everything; the connection has ended. */
    void close() {
        dropBatch();
        inbound.clear();
        open = false;
        responsesOnly = true;
    }

    /**
     * The FPDUs that were made and not written, followed by a Terminate message.
     *
     * @param terminate its RDMAP payload; null for none. An accepting side may send it as its first segment: the peer
     *     has sent something, so it is ready to receive
     * @return null if the stream cannot be continued because a region is gone
     */
    @Nullable ByteBuffer lastBytes(byte @Nullable [] terminate) {
        TxBatch now = batch;
        ByteBuffer rest = now == null ? ByteBuffer.allocate(0) : now.copyOfRest();
        if (rest == null && now != null && now.isUntouched()) {
            rest = ByteBuffer.allocate(0);
        }
        if (rest == null || terminate == null) {
            return rest;
        }
        TxBatch last = io.takeBatch();
        int from = last.position();
        int ulpdu = Rdmap.UNTAGGED_HEADER_BYTES - 2 + terminate.length;
        untagged(last, ulpdu, Rdmap.TERMINATE, true, 0, Rdmap.QUEUE_TERMINATE, 1, 0);
        last.copy(terminate, 0, terminate.length);
        last.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
        ByteBuffer end = last.copyOfRest();
        io.returnBatch(last);
        if (end == null) {
            return rest;
        }
        return ByteBuffer.allocate(rest.remaining() + end.remaining())
                .put(rest)
                .put(end)
                .flip();
    }

    private void fill(TxBatch to) {
        if (ready != null) {
            putReady(to, ready);
            ready = null;
        }
        boolean room = true;
        while (room) {
            if (current == NO_MESSAGE) {
                boolean response = !inbound.isEmpty();
                boolean send = canSend();
                if (!response && !send) {
                    return;
                }
                current = response && (responseTurn || !send) ? RESPONSE_MESSAGE : SEND_MESSAGE;
                responseTurn = current == SEND_MESSAGE;
                sentBytes = 0;
                sge = 0;
                sgeBytes = 0;
                immediateSent = false;
            }
            room = current == SEND_MESSAGE ? putNextOfRequest(to) : putNextOfResponse(to);
        }
    }

    /** Puts the next segment of the request in progress; false if the batch is full. */
    private boolean putNextOfRequest(TxBatch to) {
        int slot = ring.slot(next);
        return switch (ring.opcode(slot)) {
            case SEND, SEND_WITH_INVALIDATE -> putSegment(to, slot, false);
            case SEND_WITH_IMMEDIATE ->
                immediateSent
                        ? putSegment(to, slot, false)
                        : putImmediate(to, slot, PeerFeatures.IMMEDIATE_OF_NEXT_SEND);
            case WRITE -> putSegment(to, slot, true);
            case WRITE_WITH_IMMEDIATE ->
                sentBytes < 0 ? putImmediate(to, slot, PeerFeatures.IMMEDIATE_ALONE) : putSegment(to, slot, true);
            case READ -> putReadRequest(to, slot);
            case COMPARE_AND_SWAP, FETCH_AND_ADD -> putAtomicRequest(to, slot);
        };
    }

    private boolean putSegment(TxBatch to, int slot, boolean tagged) {
        int headerBytes = tagged ? Rdmap.TAGGED_HEADER_BYTES : Rdmap.UNTAGGED_HEADER_BYTES;
        int left = ring.totalBytes(slot) - sentBytes;
        int payload = Math.min(left, maxUlpduBytes - headerBytes + 2);
        boolean inline = ring.has(slot, WorkRequest.INLINE);
        boolean copied = crc != null || inline || payload <= COPY_BYTES;
        int staged = headerBytes + Rdmap.MAX_TRAILER_BYTES + 1 + (copied ? payload : 0);
        if (!to.hasRoom(staged, copied ? 0 : ring.sgeCount(slot))) {
            return false;
        }
        boolean last = payload == left;
        int ulpdu = headerBytes - 2 + payload;
        int from = to.position();
        if (tagged) {
            tagged(to, ulpdu, Rdmap.WRITE, last, ring.remoteKey(slot), ring.remoteAddress(slot) + sentBytes);
        } else {
            if (sentBytes == 0) {
                ring.setMessageNumber(slot, nextSendNumber++);
            }
            boolean solicited = ring.has(slot, WorkRequest.SOLICITED);
            boolean invalidate = ring.opcode(slot) == WorkRequest.Opcode.SEND_WITH_INVALIDATE;
            int opcode = invalidate
                    ? solicited ? Rdmap.SEND_SOLICITED_INVALIDATE : Rdmap.SEND_INVALIDATE
                    : solicited ? Rdmap.SEND_SOLICITED : Rdmap.SEND;
            int key = invalidate ? ring.remoteKey(slot) : 0;
            untagged(to, ulpdu, opcode, last, key, Rdmap.QUEUE_SEND, ring.messageNumber(slot), sentBytes);
        }
        if (inline) {
            to.copy(ring.inlineBytes(), ring.inlineStart(slot) + sentBytes, payload);
        } else {
            putSges(to, slot, payload, copied);
        }
        to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
        sentBytes += payload;
        if (last) {
            if (ring.opcode(slot) == WorkRequest.Opcode.WRITE_WITH_IMMEDIATE) {
                sentBytes = -1;
            } else {
                endRequest(to, slot);
            }
        }
        return true;
    }

    private void putSges(TxBatch to, int slot, int payload, boolean copied) {
        int left = payload;
        while (left > 0) {
            int now = Math.min(left, ring.length(slot, sge) - sgeBytes);
            if (now > 0) {
                SoftwareMemory region = ring.region(slot, sge);
                long offset = ring.offset(slot, sge) + sgeBytes;
                if (copied) {
                    to.copy(region.segment(), offset, now);
                } else {
                    to.gather(region, offset, now, false);
                }
                sgeBytes += now;
                left -= now;
            }
            if (sgeBytes == ring.length(slot, sge)) {
                sge++;
                sgeBytes = 0;
            }
        }
    }

    private boolean putImmediate(TxBatch to, int slot, int kind) {
        if (!to.hasRoom(Rdmap.UNTAGGED_HEADER_BYTES + Rdmap.IMMEDIATE_BYTES + Rdmap.MAX_TRAILER_BYTES + 1, 0)) {
            return false;
        }
        int from = to.position();
        int ulpdu = Rdmap.UNTAGGED_HEADER_BYTES - 2 + Rdmap.IMMEDIATE_BYTES;
        int number = nextSendNumber++;
        int opcode = ring.has(slot, WorkRequest.SOLICITED) && kind == PeerFeatures.IMMEDIATE_ALONE
                ? Rdmap.IMMEDIATE_SOLICITED
                : Rdmap.IMMEDIATE;
        untagged(to, ulpdu, opcode, true, 0, Rdmap.QUEUE_SEND, number, 0);
        to.staging().putLong(to.position(), words(kind, ring.immediateData(slot)));
        to.staged(Rdmap.IMMEDIATE_BYTES);
        to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
        if (kind == PeerFeatures.IMMEDIATE_OF_NEXT_SEND) {
            immediateSent = true;
        } else {
            ring.setMessageNumber(slot, number);
            endRequest(to, slot);
        }
        return true;
    }

    private boolean putReadRequest(TxBatch to, int slot) {
        int parts = partsOf(slot);
        if (!to.hasRoom(parts * (Rdmap.MAX_HEADER_BYTES + Rdmap.MAX_TRAILER_BYTES + 1), 0)) {
            return false;
        }
        boolean none = ring.sgeCount(slot) == 0;
        int sinkStag = none ? 0 : ring.region(slot, 0).remoteKey();
        long sinkOffset = none ? 0 : ring.region(slot, 0).address() + ring.offset(slot, 0);
        ring.setMessageNumber(slot, outbound.nextNumber());
        int key = ring.remoteKey(slot);
        long address = ring.remoteAddress(slot);
        int first = 0;
        if (parts > 1) {
            first = OutboundReads.bytesOfPageFrom(address);
            readRequest(to, outbound.addFirstPart(next), sinkStag, sinkOffset, first, key, address);
        }
        int rest = outbound.add(next);
        readRequest(to, rest, sinkStag, sinkOffset + first, ring.totalBytes(slot) - first, key, address + first);
        endRequest(to, slot);
        return true;
    }

    private void readRequest(
            TxBatch to, int number, int sinkStag, long sinkOffset, int bytes, int sourceStag, long sourceOffset) {
        int from = to.position();
        int ulpdu = Rdmap.UNTAGGED_HEADER_BYTES - 2 + Rdmap.READ_REQUEST_BYTES;
        untagged(to, ulpdu, Rdmap.READ_REQUEST, true, 0, Rdmap.QUEUE_READ_REQUEST, number, 0);
        ByteBuffer staging = to.staging();
        int at = to.position();
        staging.putInt(at, sinkStag)
                .putLong(at + 4, sinkOffset)
                .putInt(at + 12, bytes)
                .putInt(at + 16, sourceStag)
                .putLong(at + 20, sourceOffset);
        to.staged(Rdmap.READ_REQUEST_BYTES);
        to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
    }

    private boolean putAtomicRequest(TxBatch to, int slot) {
        if (!to.hasRoom(Rdmap.MAX_HEADER_BYTES + Rdmap.MAX_TRAILER_BYTES + 1, 0)) {
            return false;
        }
        int from = to.position();
        int ulpdu = Rdmap.UNTAGGED_HEADER_BYTES - 2 + Rdmap.ATOMIC_REQUEST_BYTES;
        boolean swap = ring.opcode(slot) == WorkRequest.Opcode.COMPARE_AND_SWAP;
        int number = outbound.add(next);
        ring.setMessageNumber(slot, number);
        untagged(to, ulpdu, Rdmap.ATOMIC_REQUEST, true, 0, Rdmap.QUEUE_READ_REQUEST, number, 0);
        int at = to.position();
        to.staging()
                .putInt(at, swap ? Rdmap.ATOMIC_COMPARE_SWAP : Rdmap.ATOMIC_FETCH_ADD)
                .putInt(at + 4, number)
                .putInt(at + 8, ring.remoteKey(slot))
                .putLong(at + 12, ring.remoteAddress(slot))
                .putLong(at + 20, swap ? ring.swap(slot) : ring.compareOrAdd(slot))
                .putLong(at + 28, swap ? -1 : 0)
                .putLong(at + 36, swap ? ring.compareOrAdd(slot) : 0)
                .putLong(at + 44, -1);
        to.staged(Rdmap.ATOMIC_REQUEST_BYTES);
        to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
        endRequest(to, slot);
        return true;
    }

    private void endRequest(TxBatch to, int slot) {
        ring.setEndPosition(slot, batchPosition + to.bytes());
        next++;
        current = NO_MESSAGE;
    }

    /** Puts the next segment of the response in progress; false if the batch is full. */
    private boolean putNextOfResponse(TxBatch to) {
        if (inbound.isAtomic()) {
            return putAtomicResponse(to);
        }
        int left = inbound.remainingBytes();
        int payload = Math.min(left, maxUlpduBytes - Rdmap.TAGGED_HEADER_BYTES + 2);
        boolean copied = crc != null || payload <= COPY_BYTES;
        int staged = Rdmap.TAGGED_HEADER_BYTES + Rdmap.MAX_TRAILER_BYTES + 1 + (copied ? payload : 0);
        if (!to.hasRoom(staged, copied ? 0 : 1)) {
            return false;
        }
        SoftwareMemory source = inbound.source();
        if (source != null && !source.tryEnter()) {
            throw refusedResponse();
        }
        int ulpdu = Rdmap.TAGGED_HEADER_BYTES - 2 + payload;
        int from = to.position();
        try {
            tagged(to, ulpdu, Rdmap.READ_RESPONSE, payload == left, inbound.sinkStag(), inbound.sinkOffset());
            if (source != null && payload > 0) {
                if (copied) {
                    to.copy(source.segment(), inbound.sourceOffset(), payload);
                } else {
                    to.gather(source, inbound.sourceOffset(), payload, true);
                }
            }
        } finally {
            if (source != null) {
                source.exit();
            }
        }
        to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
        inbound.advance(payload);
        if (payload == left) {
            inbound.removeFirst();
            current = NO_MESSAGE;
        }
        return true;
    }

    /** The reason goes out in its place, and no response follows it. */
    private ResponseRefusedException refusedResponse() {
        inbound.clear();
        current = NO_MESSAGE;
        return new ResponseRefusedException();
    }

    private boolean putAtomicResponse(TxBatch to) {
        if (!to.hasRoom(Rdmap.MAX_HEADER_BYTES + Rdmap.MAX_TRAILER_BYTES + 1, 0)) {
            return false;
        }
        int from = to.position();
        int ulpdu = Rdmap.UNTAGGED_HEADER_BYTES - 2 + Rdmap.ATOMIC_RESPONSE_BYTES;
        untagged(to, ulpdu, Rdmap.ATOMIC_RESPONSE, true, 0, Rdmap.QUEUE_ATOMIC_RESPONSE, nextAtomicResponseNumber++, 0);
        to.staging().putInt(to.position(), inbound.requestId()).putLong(to.position() + 4, inbound.value());
        to.staged(Rdmap.ATOMIC_RESPONSE_BYTES);
        to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
        inbound.removeFirst();
        current = NO_MESSAGE;
        return true;
    }

    private void putReady(TxBatch to, ReadyMessage message) {
        switch (message) {
            case WRITE -> {
                int from = to.position();
                int ulpdu = Rdmap.TAGGED_HEADER_BYTES - 2;
                tagged(to, ulpdu, Rdmap.WRITE, true, PeerFeatures.MAGIC, PeerFeatures.word());
                to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
            }
            case READ -> readRequest(to, outbound.addReady(), 0, 0, 0, 0, 0);
            case SEND -> {
                int from = to.position();
                int ulpdu = Rdmap.UNTAGGED_HEADER_BYTES - 2;
                untagged(to, ulpdu, Rdmap.SEND, true, 0, Rdmap.QUEUE_SEND, nextSendNumber++, 0);
                to.trailer(Rdmap.trailerBytes(ulpdu), crc, from);
            }
        }
    }

    private static long words(int high, int low) {
        return ((long) high << 32) | (low & 0xffffffffL);
    }

    private static void tagged(TxBatch to, int ulpdu, int opcode, boolean last, int stag, long offset) {
        int control = Rdmap.TAGGED | (last ? Rdmap.LAST : 0) | Rdmap.VERSIONS | opcode;
        int at = to.position();
        to.staging().putLong(at, words(ulpdu << 16 | control, stag)).putLong(at + 8, offset);
        to.staged(Rdmap.TAGGED_HEADER_BYTES);
    }

    private static void untagged(
            TxBatch to, int ulpdu, int opcode, boolean last, int key, int queue, int number, int offset) {
        int control = (last ? Rdmap.LAST : 0) | Rdmap.VERSIONS | opcode;
        int at = to.position();
        to.staging()
                .putLong(at, words(ulpdu << 16 | control, key))
                .putLong(at + 8, words(queue, number))
                .putInt(at + 16, offset);
        to.staged(Rdmap.UNTAGGED_HEADER_BYTES);
    }

    /** A region that the peer is reading was deregistered while a segment of it was half written. */
    static final class RegionGoneException extends Exception {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        RegionGoneException() {
            super("a region was deregistered while the peer was reading it", null, false, false);
        }
    }

    /** A region that the peer is reading was deregistered between two segments. */
    static final class ResponseRefusedException extends RuntimeException {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        ResponseRefusedException() {
            super("a region was deregistered while the peer was reading it", null, false, false);
        }
    }
}
