package org.verbena.transport.soft;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.MemoryDomain.Access;

/**
 * The receiving half of a connection: reads the socket, finds the FPDUs, checks every field, and places payload where it
 * belongs. What arrives is hostile until shown otherwise.
 *
 * <pre>{@code
 * HEADER --checked--> PAYLOAD --placed--> TRAILER --last segment? deliver--> HEADER
 *    any check that fails: refuse, which ends the connection with a Terminate message
 * }</pre>
 *
 * <p>Without CRC payload is placed as it comes, so that a connection keeps no more than a header between two reads; large
 * payloads go from the socket into registered memory without a copy in between. With CRC an FPDU is kept until it is whole
 * and checked, as RFC 5044 (4.4) asks. One thread.
 */
final class FpduReceiver {

    /** Payload still to come from which on the socket is read straight into registered memory. */
    static final int DIRECT_BYTES = 16 * 1024;

    /** What such a read takes beyond that payload: its trailer, and the next header. */
    private static final int DIRECT_TAIL_BYTES = 4 * 1024;

    private static final VarHandle NATIVE_LONG = ValueLayout.JAVA_LONG.varHandle();

    private static final String CLOSED_MEANWHILE = "the memory was closed, or its key taken back, in the middle of it";

    private static final int HEADER = 0;
    private static final int PAYLOAD = 1;
    private static final int TRAILER = 2;

    private final SoftEndpoint endpoint;
    private final SoftSocket socket;
    private final SoftIoHandler io;
    private final FpduSender sender;
    private final SendRing sendRing;
    private final ConnectionMemory own;
    private final boolean crc;
    private final Placement receive;
    private final Placement read;
    private final RegionView writeView = new RegionView();
    private final ByteBuffer[] direct = new ByteBuffer[2];

    private boolean atomics;
    private boolean immediateData;
    private boolean readFilled;

    /** What is left of the last read: part of a header, of a trailer, or with CRC of an FPDU. */
    private byte[] carry = new byte[128];

    private int carryBytes;

    private int phase = HEADER;
    private int ulpduBytes;
    private int control;
    private int opcode;
    private boolean last;

    /** Tagged: the STag. Untagged: the key to invalidate. */
    private int key;

    private long taggedOffset;
    private int queue;
    private int messageNumber;
    private int messageOffset;

    /** Where the RDMAP header was put aside, for a Terminate message. */
    private final byte[] requestHeader = new byte[Rdmap.READ_REQUEST_BYTES];

    private int payloadBytes;
    private int payloadLeft;
    private long copiedBytes;

    private int nextSendNumber = 1;
    private int nextReadNumber = 1;
    private int nextAtomicResponseNumber = 1;

    private @Nullable SoftMemory writeTarget;
    private long writeOffset;
    private int writeMessageBytes;
    private int lastWriteBytes;

    private boolean immediateHeld;
    private int heldImmediate;

    /** Why {@link #find} found nothing that the peer may use. */
    private @Nullable String denial;

    /**
     * A receiver of a stream that begins.
     *
     * @param endpoint hears of messages
     * @param socket connected
     * @param sender answers reads
     * @param sendRing whose reads wait for responses
     * @param own what was registered for this peer alone
     * @param maxSges pieces of a receive or read
     * @param crc whether FPDUs have CRCs
     */
    FpduReceiver(
            SoftEndpoint endpoint,
            SoftSocket socket,
            FpduSender sender,
            SendRing sendRing,
            ConnectionMemory own,
            int maxSges,
            boolean crc) {
        this.endpoint = endpoint;
        this.own = own;
        this.socket = socket;
        this.sender = sender;
        this.sendRing = sendRing;
        this.crc = crc;
        io = socket.io();
        receive = new Placement(maxSges);
        read = new Placement(maxSges);
    }

    /**
     * What both sides can do beyond plain iWARP, once the peer is known.
     *
     * @param features of {@link PeerFeatures}
     */
    void setFeatures(int features) {
        atomics = (features & PeerFeatures.ATOMICS) != 0;
        immediateData = (features & PeerFeatures.IMMEDIATE_DATA) != 0;
    }

    /** Whether the peer is in the middle of a message. */
    boolean isInMessage() {
        return phase != HEADER || carryBytes > 0 || receive.isActive() || read.isActive();
    }

    /** The receive that a message has begun to fill. */
    Placement receiveInProgress() {
        return receive;
    }

    /** Payload that was not read straight to its place, so far. */
    long copiedBytes() {
        return copiedBytes;
    }

    /** Whether the last read took all it could, so that there may be more. */
    boolean hasMore() {
        return readFilled;
    }

    /**
     * Reads the socket once and handles what came.
     *
     * @return how many bytes came; -1 if the peer has ended the stream
     * @throws IOException the connection is broken
     */
    int readOnce() throws IOException {
        readFilled = false;
        ByteBuffer buffer = io.readBuffer().clear();
        if (phase == PAYLOAD && payloadLeft >= DIRECT_BYTES && carryBytes == 0 && !crc) {
            return readDirect(buffer);
        }
        if (carryBytes > 0) {
            buffer.put(carry, 0, carryBytes);
        }
        int most = isLargeAhead() ? DIRECT_TAIL_BYTES + (phase == PAYLOAD ? payloadLeft : 0) : SoftIoHandler.READ_BYTES;
        buffer.limit(carryBytes + most);
        int count = socket.channel().read(buffer);
        readFilled = !buffer.hasRemaining();
        if (count <= 0) {
            return count;
        }
        int end = buffer.position();
        carryBytes = 0;
        // From here on the limit is for the buffer's own checks.
        buffer.clear();
        keep(buffer, parse(buffer, 0, end), end);
        return count;
    }

    /** Whether the next header is likely to be one before a large payload, which then should not have been read yet. */
    private boolean isLargeAhead() {
        if (crc) {
            return false;
        }
        if (read.isActive()) {
            return read.capacityBytes() - read.placedBytes() >= DIRECT_BYTES;
        }
        if (sender.awaitsRead()) {
            long sequence = sender.awaitedSequence();
            return sequence >= 0 && sendRing.totalBytes(sendRing.slot(sequence)) >= DIRECT_BYTES;
        }
        // What came last tells what comes next: the segments of a long message, or long messages.
        return payloadBytes >= 2 * DIRECT_BYTES;
    }

    private int readDirect(ByteBuffer buffer) throws IOException {
        SoftMemory entered = null;
        ByteBuffer room;
        if (opcode == Rdmap.WRITE) {
            SoftMemory target = writeTarget;
            if (target == null || !target.tryEnter()) {
                denial = CLOSED_MEANWHILE;
                refuse(TerminateReason.DDP_INVALID_STAG);
                return 0;
            }
            entered = target;
            room = writeView.aim(target, writeOffset, payloadLeft);
        } else {
            room = (opcode == Rdmap.READ_RESPONSE ? read : receive).room(payloadLeft);
        }
        int roomBytes = room.remaining();
        int mostBytes = roomBytes;
        long count;
        try {
            if (roomBytes < payloadLeft) {
                count = socket.channel().read(room);
            } else {
                direct[0] = room;
                direct[1] = buffer.limit(DIRECT_TAIL_BYTES);
                mostBytes += DIRECT_TAIL_BYTES;
                count = socket.channel().read(direct);
            }
        } finally {
            if (entered != null) {
                entered.exit();
            }
        }
        readFilled = count == mostBytes;
        if (count <= 0) {
            return (int) count;
        }
        int placed = (int) Math.min(count, roomBytes);
        if (opcode == Rdmap.WRITE) {
            writeOffset += placed;
        } else {
            (opcode == Rdmap.READ_RESPONSE ? read : receive).placed(placed);
        }
        payloadLeft -= placed;
        if (payloadLeft == 0) {
            phase = TRAILER;
        }
        int end = (int) (count - placed);
        buffer.clear();
        keep(buffer, parse(buffer, 0, end), end);
        return (int) count;
    }

    private void keep(ByteBuffer buffer, int from, int end) {
        int left = end - from;
        if (left > 0 && endpoint.isOpen()) {
            if (left > carry.length) {
                carry = new byte[Math.min(Rdmap.MAX_FPDU_BYTES, Integer.highestOneBit(left) * 2)];
            }
            buffer.get(from, carry, 0, left);
            carryBytes = left;
        }
    }

    /** Handles bytes; returns where it stopped for want of more. */
    private int parse(ByteBuffer buffer, int from, int end) {
        int at = from;
        while (endpoint.isOpen()) {
            switch (phase) {
                case HEADER -> {
                    int headerBytes = parseHeader(buffer, at, end);
                    if (headerBytes == 0) {
                        return at;
                    }
                    at += headerBytes;
                }
                case PAYLOAD -> {
                    if (at == end) {
                        return at;
                    }
                    int now = Math.min(payloadLeft, end - at);
                    if (!place(at, now)) {
                        return at;
                    }
                    at += now;
                    payloadLeft -= now;
                    if (payloadLeft == 0) {
                        phase = TRAILER;
                    }
                }
                default -> {
                    int trailer = Rdmap.trailerBytes(ulpduBytes);
                    if (end - at < trailer) {
                        return at;
                    }
                    at += trailer;
                    phase = HEADER;
                    finishSegment();
                }
            }
        }
        return at;
    }

    private boolean place(int at, int bytes) {
        copiedBytes += bytes;
        MemorySegment from = io.readSegment();
        switch (opcode) {
            case Rdmap.WRITE -> {
                SoftMemory target = writeTarget;
                if (target == null || !target.tryEnter()) {
                    denial = CLOSED_MEANWHILE;
                    refuse(TerminateReason.DDP_INVALID_STAG);
                    return false;
                }
                try {
                    MemorySegment.copy(from, at, target.segment(), writeOffset, bytes);
                } finally {
                    target.exit();
                }
                writeOffset += bytes;
            }
            case Rdmap.READ_RESPONSE -> read.place(from, at, bytes);
            default -> receive.place(from, at, bytes);
        }
        return true;
    }

    /** Parses and checks a header; returns its length, or 0 if more bytes are needed or the stream was refused. */
    private int parseHeader(ByteBuffer buffer, int at, int end) {
        int there = end - at;
        if (there < 4) {
            return 0;
        }
        int first = buffer.getInt(at);
        ulpduBytes = first >>> 16;
        control = first & 0xffff;
        opcode = control & Rdmap.OPCODE_MASK;
        last = (control & Rdmap.LAST) != 0;
        boolean tagged = (control & Rdmap.TAGGED) != 0;
        int headerBytes = tagged ? Rdmap.TAGGED_HEADER_BYTES : Rdmap.UNTAGGED_HEADER_BYTES;
        if (ulpduBytes < headerBytes - 2) {
            return refuseBare(
                    TerminateReason.MPA_FRAMING, "an FPDU of " + ulpduBytes + " bytes has no room for its header");
        }
        int trailer = Rdmap.trailerBytes(ulpduBytes);
        if (crc) {
            int whole = 2 + ulpduBytes + trailer;
            if (there < whole) {
                return 0;
            }
            int checkedEnd = at + whole - Rdmap.CRC_BYTES;
            int expected = Integer.reverseBytes(buffer.getInt(checkedEnd));
            if (io.crcOfRead(at, checkedEnd) != expected) {
                return refuseBare(
                        TerminateReason.MPA_CRC, "the CRC of an FPDU of " + ulpduBytes + " bytes does not fit");
            }
        }
        int rdmapBytes = tagged ? 0 : rdmapHeaderBytes();
        if (there < Math.min(headerBytes + rdmapBytes, 2 + ulpduBytes)) {
            return 0;
        }
        key = buffer.getInt(at + 4);
        if (tagged) {
            taggedOffset = buffer.getLong(at + 8);
        } else {
            queue = buffer.getInt(at + 8);
            messageNumber = buffer.getInt(at + 12);
            messageOffset = buffer.getInt(at + 16);
        }
        payloadBytes = ulpduBytes + 2 - headerBytes;
        payloadLeft = payloadBytes;
        if ((control & Rdmap.DDP_VERSION_MASK) != Rdmap.DDP_VERSION) {
            refuse(tagged ? TerminateReason.DDP_TAGGED_VERSION : TerminateReason.DDP_UNTAGGED_VERSION);
            return 0;
        }
        if ((control & Rdmap.RDMAP_VERSION_MASK) != Rdmap.RDMAP_VERSION) {
            refuse(TerminateReason.RDMAP_INVALID_VERSION);
            return 0;
        }
        if (opcode >= Rdmap.OPCODES || tagged != (opcode == Rdmap.WRITE || opcode == Rdmap.READ_RESPONSE)) {
            refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
            return 0;
        }
        if (!endpoint.onSegment(opcode, key, taggedOffset, payloadBytes)) {
            return 0;
        }
        boolean good = switch (opcode) {
            case Rdmap.WRITE -> beginWrite();
            case Rdmap.READ_RESPONSE -> beginReadResponse();
            case Rdmap.READ_REQUEST -> readRequest(buffer, at + headerBytes);
            case Rdmap.ATOMIC_REQUEST -> atomicRequest(buffer, at + headerBytes);
            case Rdmap.ATOMIC_RESPONSE -> atomicResponse(buffer, at + headerBytes);
            case Rdmap.IMMEDIATE, Rdmap.IMMEDIATE_SOLICITED -> immediate(buffer, at + headerBytes);
            case Rdmap.TERMINATE -> terminate(buffer, at + headerBytes);
            default -> beginSend();
        };
        if (!good) {
            return 0;
        }
        // Requests without payload are all header.
        int used = payloadLeft == 0 ? headerBytes + payloadBytes : headerBytes;
        phase = payloadLeft == 0 ? TRAILER : PAYLOAD;
        return used;
    }

    /** How much of an untagged segment must be there before it can be looked at. */
    private int rdmapHeaderBytes() {
        return switch (opcode) {
            case Rdmap.READ_REQUEST -> Rdmap.READ_REQUEST_BYTES;
            case Rdmap.ATOMIC_REQUEST -> Rdmap.ATOMIC_REQUEST_BYTES;
            case Rdmap.ATOMIC_RESPONSE -> Rdmap.ATOMIC_RESPONSE_BYTES;
            case Rdmap.IMMEDIATE, Rdmap.IMMEDIATE_SOLICITED -> Rdmap.IMMEDIATE_BYTES;
            case Rdmap.TERMINATE -> Rdmap.MAX_TERMINATE_BYTES;
            default -> 0;
        };
    }

    private boolean beginWrite() {
        if (payloadBytes == 0) {
            return true;
        }
        if (wraps(taggedOffset, payloadBytes)) {
            return refuse(TerminateReason.DDP_TO_WRAP);
        }
        SoftMemory target = find(key, taggedOffset, payloadBytes, Access.REMOTE_WRITE);
        if (target == null) {
            return refuse(TerminateReason.DDP_INVALID_STAG);
        }
        writeTarget = target;
        writeOffset = taggedOffset - target.address();
        return true;
    }

    /**
     * The memory that a peer may use in this way. Why not, if not, is for this side's log alone: a peer that tries keys must
     * not see whether one of them is closed, or too short, or none (RFC 5042, 6.1.1).
     */
    private @Nullable SoftMemory find(int stag, long offset, long bytes, Access right) {
        SoftMemory memory = io.domain().find(stag);
        if (memory == null) {
            denial = "nothing is registered with this STag";
        } else if (!memory.isFor(own)) {
            denial = "the memory was given to the peer of another connection";
        } else if (!memory.isOpenToPeers()) {
            denial = "the memory is closed, or its key was taken back";
        } else if (!memory.allows(right)) {
            denial = "the memory was registered without " + right;
        } else if (!memory.contains(offset, bytes)) {
            denial = "it leaves the memory of " + memory.lengthBytes() + " bytes at 0x"
                    + Long.toHexString(memory.address());
        } else {
            return memory;
        }
        return null;
    }

    private static boolean wraps(long offset, long bytes) {
        return bytes > 0 && Long.compareUnsigned(offset + bytes - 1, offset) < 0;
    }

    private boolean beginReadResponse() {
        if (!sender.awaitsRead()) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        long sequence = sender.awaitedSequence();
        if (sequence < 0) {
            // The ready-to-receive read asked for nothing.
            return (payloadBytes == 0 && last) || refuse(TerminateReason.DDP_BOUNDS);
        }
        int slot = sendRing.slot(sequence);
        int pieces = sendRing.sgeCount(slot);
        if (!read.isActive()) {
            read.begin(sendRing.workId(slot), sendRing.totalBytes(slot), pieces);
            for (int i = 0; i < pieces; i++) {
                read.setPiece(i, sendRing.region(slot, i), sendRing.offset(slot, i), sendRing.length(slot, i));
            }
        }
        int left = sender.awaitedEndBytes() - read.placedBytes();
        if (payloadBytes > left || (last && payloadBytes < left)) {
            return refuse(TerminateReason.DDP_BOUNDS);
        }
        if (payloadBytes > 0) {
            SoftMemory sink = sendRing.region(slot, 0);
            if (key != sink.remoteKey()) {
                return refuse(TerminateReason.DDP_INVALID_STAG);
            }
            if (taggedOffset != sink.address() + sendRing.offset(slot, 0) + read.placedBytes()) {
                return refuse(TerminateReason.DDP_BOUNDS);
            }
        }
        return true;
    }

    private boolean beginSend() {
        if (queue != Rdmap.QUEUE_SEND) {
            return refuse(TerminateReason.DDP_INVALID_QUEUE);
        }
        if (messageNumber != nextSendNumber) {
            return refuse(TerminateReason.DDP_INVALID_MSN);
        }
        if (messageOffset != (receive.isActive() ? receive.placedBytes() : 0)) {
            return refuse(TerminateReason.DDP_INVALID_OFFSET);
        }
        if (!receive.isActive() && !endpoint.takeReceive(receive)) {
            return refuse(TerminateReason.DDP_NO_BUFFER);
        }
        if (payloadBytes > receive.capacityBytes() - receive.placedBytes()) {
            endpoint.receiveTooSmall(receive);
            return refuse(TerminateReason.DDP_TOO_LONG);
        }
        return true;
    }

    private boolean checkRequest(int expectedQueue, int expectedNumber, int headerBytes) {
        if (queue != expectedQueue) {
            return refuse(TerminateReason.DDP_INVALID_QUEUE);
        }
        if (messageNumber != expectedNumber) {
            return refuse(TerminateReason.DDP_INVALID_MSN);
        }
        if (messageOffset != 0) {
            return refuse(TerminateReason.DDP_INVALID_OFFSET);
        }
        if (payloadBytes > headerBytes) {
            return refuse(TerminateReason.DDP_TOO_LONG);
        }
        if (payloadBytes < headerBytes || !last) {
            return refuse(TerminateReason.RDMAP_OPERATION_UNSPECIFIED);
        }
        payloadLeft = 0;
        return true;
    }

    private boolean readRequest(ByteBuffer buffer, int at) {
        if (!checkRequest(Rdmap.QUEUE_READ_REQUEST, nextReadNumber, Rdmap.READ_REQUEST_BYTES)) {
            return false;
        }
        buffer.get(at, requestHeader);
        if (sender.inbound().isFull()) {
            return refuse(TerminateReason.DDP_NO_BUFFER);
        }
        int sinkStag = buffer.getInt(at);
        long sinkOffset = buffer.getLong(at + 4);
        int bytes = buffer.getInt(at + 12);
        int sourceStag = buffer.getInt(at + 16);
        long sourceOffset = buffer.getLong(at + 20);
        nextReadNumber++;
        if (bytes == 0) {
            sender.inbound().addRead(null, 0, 0, sinkStag, sinkOffset);
            return true;
        }
        long unsignedBytes = bytes & 0xffffffffL;
        if (wraps(sourceOffset, unsignedBytes)) {
            return refuse(TerminateReason.RDMAP_TO_WRAP);
        }
        if (bytes < 0) {
            // No message is as long, whatever the region.
            return refuse(TerminateReason.RDMAP_BOUNDS);
        }
        SoftMemory source = find(sourceStag, sourceOffset, unsignedBytes, Access.REMOTE_READ);
        if (source == null) {
            return refuse(TerminateReason.RDMAP_INVALID_STAG);
        }
        sender.inbound().addRead(source, sourceOffset - source.address(), bytes, sinkStag, sinkOffset);
        return true;
    }

    private boolean atomicRequest(ByteBuffer buffer, int at) {
        if (!atomics) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        if (!checkRequest(Rdmap.QUEUE_READ_REQUEST, nextReadNumber, Rdmap.ATOMIC_REQUEST_BYTES)) {
            return false;
        }
        if (sender.inbound().isFull()) {
            return refuse(TerminateReason.DDP_NO_BUFFER);
        }
        int operation = buffer.getInt(at) & 0xf;
        long offset = buffer.getLong(at + 12);
        if (operation != Rdmap.ATOMIC_FETCH_ADD && operation != Rdmap.ATOMIC_COMPARE_SWAP) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        if ((offset & 7) != 0) {
            return refuse(TerminateReason.RDMAP_STREAM_CATASTROPHIC);
        }
        SoftMemory target = find(buffer.getInt(at + 8), offset, Long.BYTES, Access.REMOTE_ATOMIC);
        if (target == null || !target.tryEnter()) {
            return refuse(TerminateReason.RDMAP_INVALID_STAG);
        }
        long old;
        try {
            long value = buffer.getLong(at + 20);
            long mask = buffer.getLong(at + 28);
            long compare = buffer.getLong(at + 36);
            long compareMask = buffer.getLong(at + 44);
            MemorySegment segment = target.segment();
            long from = offset - target.address();
            old = operation == Rdmap.ATOMIC_FETCH_ADD
                    ? fetchAndAdd(segment, from, value, mask)
                    : compareAndSwap(segment, from, compare, compareMask, value, mask);
        } finally {
            target.exit();
        }
        nextReadNumber++;
        sender.inbound().addAtomic(buffer.getInt(at + 4), old);
        return true;
    }

    /**
     * Adds field by field: a bit of the mask ends a field, whose carry goes no further.
     *
     * <p>Source: RFC 7306, 5.1.1
     */
    static long addFields(long value, long add, long mask) {
        // Without the top bits of the fields no carry leaves a field; they are added without carry.
        return ((value & ~mask) + (add & ~mask)) ^ ((value ^ add) & mask);
    }

    private static long fetchAndAdd(MemorySegment segment, long at, long add, long mask) {
        if (mask == 0) {
            return (long) NATIVE_LONG.getAndAdd(segment, at, add);
        }
        while (true) {
            long old = (long) NATIVE_LONG.getVolatile(segment, at);
            if (NATIVE_LONG.compareAndSet(segment, at, old, addFields(old, add, mask))) {
                return old;
            }
        }
    }

    private static long compareAndSwap(
            MemorySegment segment, long at, long compare, long compareMask, long swap, long swapMask) {
        while (true) {
            long old = (long) NATIVE_LONG.getVolatile(segment, at);
            if (((compare ^ old) & compareMask) != 0) {
                return old;
            }
            if (NATIVE_LONG.compareAndSet(segment, at, old, (old & ~swapMask) | (swap & swapMask))) {
                return old;
            }
        }
    }

    private boolean atomicResponse(ByteBuffer buffer, int at) {
        if (!sender.awaitsResponse() || sender.awaitsRead()) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        if (!checkRequest(Rdmap.QUEUE_ATOMIC_RESPONSE, nextAtomicResponseNumber, Rdmap.ATOMIC_RESPONSE_BYTES)) {
            return false;
        }
        if (buffer.getInt(at) != sender.awaitedNumber()) {
            return refuse(TerminateReason.RDMAP_OPERATION_UNSPECIFIED);
        }
        nextAtomicResponseNumber++;
        int slot = sendRing.slot(sender.awaitedSequence());
        sendRing.region(slot, 0)
                .segment()
                .set(ValueLayout.JAVA_LONG_UNALIGNED, sendRing.offset(slot, 0), buffer.getLong(at + 4));
        return true;
    }

    private boolean immediate(ByteBuffer buffer, int at) {
        if (!immediateData || receive.isActive()) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        if (!checkRequest(Rdmap.QUEUE_SEND, nextSendNumber, Rdmap.IMMEDIATE_BYTES)) {
            return false;
        }
        if (buffer.getInt(at) == PeerFeatures.IMMEDIATE_OF_NEXT_SEND) {
            if (immediateHeld) {
                return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
            }
            immediateHeld = true;
            heldImmediate = buffer.getInt(at + 4);
            return true;
        }
        if (immediateHeld) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        if (!endpoint.takeReceive(receive)) {
            return refuse(TerminateReason.DDP_NO_BUFFER);
        }
        heldImmediate = buffer.getInt(at + 4);
        return true;
    }

    private boolean terminate(ByteBuffer buffer, int at) {
        if (queue != Rdmap.QUEUE_TERMINATE) {
            return refuse(TerminateReason.DDP_INVALID_QUEUE);
        }
        if (messageNumber != 1 || payloadBytes < 4 || payloadBytes > Rdmap.MAX_TERMINATE_BYTES) {
            return refuse(TerminateReason.DDP_INVALID_MSN);
        }
        byte[] message = new byte[payloadBytes];
        buffer.get(at, message);
        endpoint.onTerminate(message);
        return false;
    }

    private void finishSegment() {
        switch (opcode) {
            case Rdmap.WRITE -> {
                writeTarget = null;
                writeMessageBytes += payloadBytes;
                if (last) {
                    lastWriteBytes = writeMessageBytes;
                    writeMessageBytes = 0;
                }
            }
            case Rdmap.READ_RESPONSE -> {
                if (last) {
                    if (!sender.awaitsFirstPart()) {
                        read.end();
                    }
                    sender.answered();
                    endpoint.onAnswered();
                }
            }
            case Rdmap.ATOMIC_RESPONSE -> {
                sender.answered();
                endpoint.onAnswered();
            }
            case Rdmap.READ_REQUEST, Rdmap.ATOMIC_REQUEST -> {
                // The end of the turn sends the response.
            }
            case Rdmap.IMMEDIATE, Rdmap.IMMEDIATE_SOLICITED -> {
                nextSendNumber++;
                if (!immediateHeld) {
                    endpoint.onReceived(
                            receive,
                            lastWriteBytes,
                            EndpointHandler.WITH_IMMEDIATE | EndpointHandler.REMOTE_WRITE,
                            heldImmediate);
                }
            }
            default -> {
                if (last) {
                    nextSendNumber++;
                    finishSend();
                }
            }
        }
    }

    private void finishSend() {
        int flags = 0;
        int word = 0;
        if (opcode == Rdmap.SEND_INVALIDATE || opcode == Rdmap.SEND_SOLICITED_INVALIDATE) {
            SoftMemory region = io.domain().find(key);
            if (region == null || !region.isOwnOf(own) || !region.invalidate()) {
                denial = "it is no key that was given to this peer alone";
                refuse(TerminateReason.RDMAP_CANNOT_INVALIDATE);
                return;
            }
            flags |= EndpointHandler.WITH_INVALIDATE;
            word = key;
        }
        if (immediateHeld) {
            immediateHeld = false;
            flags |= EndpointHandler.WITH_IMMEDIATE;
            word = heldImmediate;
        }
        endpoint.onReceived(receive, receive.placedBytes(), flags, word);
    }

    /** Refuses the current segment; its header goes into the Terminate message. Always false. */
    private boolean refuse(TerminateReason reason) {
        boolean tagged = (control & Rdmap.TAGGED) != 0;
        boolean request = opcode == Rdmap.READ_REQUEST
                && payloadBytes == Rdmap.READ_REQUEST_BYTES
                && reason.layer == 0
                && reason.type == 1;
        ByteBuffer message = ByteBuffer.allocate(Rdmap.MAX_TERMINATE_BYTES);
        int headerFlags = reason.layer == 2 || reason.type == 0 ? 0 : request ? 0xe000 : 0xc000;
        message.putShort((short) reason.control()).putShort((short) headerFlags);
        if (headerFlags != 0) {
            message.putShort((short) ulpduBytes).putShort((short) control).putInt(key);
            if (tagged) {
                message.putLong(taggedOffset);
            } else {
                message.putInt(queue).putInt(messageNumber).putInt(messageOffset);
            }
            if (request) {
                message.put(requestHeader);
            }
        }
        String what = tagged
                ? String.format("STag 0x%08x, offset 0x%x, %d bytes", key, taggedOffset, payloadBytes)
                : String.format(
                        "queue %d, number %d, offset %d, %d bytes", queue, messageNumber, messageOffset, payloadBytes);
        endpoint.onRefused(
                reason,
                Rdmap.name(opcode) + " (" + what + ")",
                denial,
                Arrays.copyOf(message.array(), message.position()));
        return false;
    }

    private int refuseBare(TerminateReason reason, String what) {
        byte[] message =
                ByteBuffer.allocate(4).putShort((short) reason.control()).array();
        endpoint.onRefused(reason, what, null, message);
        return 0;
    }

    /** The connection is over. */
    void close() {
        read.end();
        carryBytes = 0;
        phase = HEADER;
        writeTarget = null;
    }
}
