package org.verbena.transport.soft;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.RegionView;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareMemory;
import org.verbena.transport.spi.EndpointHandler;

/**
 * The receiving half of a connection without its socket: it is fed bytes, finds the FPDUs, checks every field, and
 * places payload where it belongs. It treats all input as hostile, does no I/O and has no clock.
 *
 * <pre>{@code
 * HEADER --checked--> PAYLOAD --placed--> TRAILER --last segment? deliver--> HEADER
 *    any check that fails: refuse, which ends the connection with a Terminate message
 * }</pre>
 *
 * <p>Without CRC payload is placed as it arrives, so that a connection keeps no more than a header between two reads;
 * its caller may ask where payload goes ({@link #directBytes}) and put it there without a copy in between. With CRC an
 * FPDU is parsed when it is complete, as RFC 5044 (4.4) asks. Not thread-safe; confined to the loop's thread.
 */
final class FpduParser {

    private static final String CLOSED_MEANWHILE =
            "the memory was closed, or its key invalidated, during the operation";

    private static final int HEADER = 0;
    private static final int PAYLOAD = 1;
    private static final int TRAILER = 2;

    private final SegmentSink sink;
    private final SoftwareDomain domain;
    private final ConnectionMemory connectionMemory;
    private final SendRing sendRing;
    private final OutboundReads outbound;
    private final InboundReads inbound;
    private final @Nullable CRC32C crc;
    private final Placement receive = new Placement();
    private final Placement read = new Placement();
    private final RegionView writeView = new RegionView();

    private boolean atomics;
    private boolean immediateData;
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

    /** A copy of the RDMAP header, for a Terminate message. */
    private final byte[] requestHeader = new byte[Rdmap.READ_REQUEST_BYTES];

    private int payloadBytes;
    private int payloadLeft;
    private long copiedBytes;
    private long segments;
    private long messageBytes;
    private long responseBytes;

    private int nextSendNumber = 1;
    private int nextReadNumber = 1;
    private int nextAtomicResponseNumber = 1;

    private @Nullable SoftwareMemory writeTarget;

    /** The memory that payload is being put into directly, if it is the peer's write. */
    private @Nullable SoftwareMemory entered;

    private long writeOffset;
    private int writeMessageBytes;
    private int lastWriteBytes;

    /** The message in the current segment was taken where it lay. */
    private boolean taken;

    private boolean immediateHeld;
    private int heldImmediate;

    /** Why {@link #find} found nothing that the peer may use. */
    private @Nullable String denial;

    /**
     * Creates a parser for the beginning of a stream.
     *
     * @param sink receives what it finds
     * @param domain the keys
     * @param connectionMemory what was registered only for this peer
     * @param sendRing whose reads wait for responses
     * @param outbound which of them
     * @param inbound the peer's reads, which the sender answers
     * @param crc computes CRCs; null if FPDUs have none
     */
    FpduParser(
            SegmentSink sink,
            SoftwareDomain domain,
            ConnectionMemory connectionMemory,
            SendRing sendRing,
            OutboundReads outbound,
            InboundReads inbound,
            @Nullable CRC32C crc) {
        this.sink = sink;
        this.domain = domain;
        this.connectionMemory = connectionMemory;
        this.sendRing = sendRing;
        this.outbound = outbound;
        this.inbound = inbound;
        this.crc = crc;
    }

    /**
     * The features of both sides beyond plain iWARP, once the peer is known.
     *
     * @param features of {@link PeerFeatures}
     */
    void setFeatures(int features) {
        atomics = (features & PeerFeatures.ATOMICS) != 0;
        immediateData = (features & PeerFeatures.IMMEDIATE_DATA) != 0;
    }

    /** Whether the peer is in the middle of a message. */
    boolean isUnfinished() {
        return phase != HEADER || receive.isActive() || read.isActive();
    }

    /** Whether the peer is in the middle of a segment's payload or trailer. */
    boolean isInSegment() {
        return phase != HEADER;
    }

    /** Segments that are complete. */
    long segments() {
        return segments;
    }

    /** Whether the peer is in the middle of a message that takes a receive. */
    boolean isInMessage() {
        return receive.isActive();
    }

    /** A number that changes with each message that takes a receive. */
    long messages() {
        return nextSendNumber;
    }

    /** Payload of messages that take receives, so far. */
    long messageBytes() {
        return messageBytes;
    }

    /** Payload of responses, so far. */
    long responseBytes() {
        return responseBytes;
    }

    /** The receive that a message has begun to fill. */
    Placement receiveInProgress() {
        return receive;
    }

    /** Payload that was fed and copied to its place, so far. */
    long copiedBytes() {
        return copiedBytes;
    }

    /** Payload of the current segment that is still to come and may be placed by the caller; else 0. */
    int directBytes() {
        return phase == PAYLOAD && crc == null ? payloadLeft : 0;
    }

    /**
     * Whether the next header is likely to be one before a payload of so many bytes, which then should not be read with
     * it.
     */
    boolean expectsPayloadOf(int bytes) {
        if (crc != null) {
            return false;
        }
        if (read.isActive()) {
            return read.capacityBytes() - read.placedBytes() >= bytes;
        }
        if (outbound.awaitsRead()) {
            long sequence = outbound.awaitedSequence();
            return sequence >= 0 && sendRing.totalBytes(sendRing.slot(sequence)) >= bytes;
        }
        // A long segment is probably followed by another: a message has several, or messages are long.
        return payloadBytes >= 2 * bytes;
    }

    /**
     * Where payload goes. {@link #endDirect} must follow soon: the peer's region cannot be closed in between.
     *
     * @return room in one piece for at most {@link #directBytes()}; null if the memory is gone, and with it the
     *     connection
     */
    @Nullable ByteBuffer beginDirect() {
        if (opcode == Rdmap.READ_RESPONSE) {
            return read.room(payloadLeft);
        }
        if (opcode != Rdmap.WRITE) {
            return receive.room(payloadLeft);
        }
        SoftwareMemory target = writeTarget;
        if (target == null || !target.tryEnter()) {
            denial = CLOSED_MEANWHILE;
            refuse(TerminateReason.DDP_INVALID_STAG);
            return null;
        }
        entered = target;
        return writeView.aim(target, writeOffset, payloadLeft);
    }

    /**
     * Payload was put where {@link #beginDirect} had aimed it.
     *
     * @param bytes how much, 0 or more
     */
    void endDirect(int bytes) {
        SoftwareMemory left = entered;
        if (left != null) {
            entered = null;
            left.exit();
            writeOffset += bytes;
        } else if (opcode == Rdmap.READ_RESPONSE) {
            read.placed(bytes);
            responseBytes += bytes;
        } else {
            receive.placed(bytes);
            messageBytes += bytes;
        }
        payloadLeft -= bytes;
        if (payloadLeft == 0) {
            phase = TRAILER;
        }
    }

    /**
     * Handles bytes of the stream. Bytes that it does not consume must be passed again, followed by more: part of a
     * header or of a trailer, and with CRC part of an FPDU.
     *
     * @param buffer the bytes, big-endian; its position and limit are the parser's during the call
     * @param segment the same memory
     * @param from where they begin
     * @param end where they end
     * @return where it stopped
     */
    int parse(ByteBuffer buffer, MemorySegment segment, int from, int end) {
        int at = from;
        while (sink.isOpen()) {
            switch (phase) {
                case HEADER -> {
                    int headerBytes = parseHeader(buffer, segment, at, end);
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
                    if (!place(segment, at, now)) {
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

    private boolean place(MemorySegment from, int at, int bytes) {
        copiedBytes += bytes;
        switch (opcode) {
            case Rdmap.WRITE -> {
                SoftwareMemory target = writeTarget;
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
            case Rdmap.READ_RESPONSE -> {
                read.place(from, at, bytes);
                responseBytes += bytes;
            }
            default -> {
                receive.place(from, at, bytes);
                messageBytes += bytes;
            }
        }
        return true;
    }

    /** Parses and checks a header; returns its length, or 0 if more bytes are needed or the stream was refused. */
    private int parseHeader(ByteBuffer buffer, MemorySegment segment, int at, int end) {
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
        CRC32C checksum = crc;
        if (checksum != null) {
            int whole = 2 + ulpduBytes + trailer;
            if (there < whole) {
                return 0;
            }
            int checkedEnd = at + whole - Rdmap.CRC_BYTES;
            int expected = Integer.reverseBytes(buffer.getInt(checkedEnd));
            checksum.reset();
            checksum.update(buffer.limit(checkedEnd).position(at));
            buffer.clear();
            if ((int) checksum.getValue() != expected) {
                return refuseBare(
                        TerminateReason.MPA_CRC, "the CRC of an FPDU of " + ulpduBytes + " bytes does not match");
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
        if (!sink.onSegment(opcode, key, taggedOffset, payloadBytes)) {
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
            default -> beginSend(segment, at + headerBytes, end);
        };
        if (!good) {
            return 0;
        }
        // Requests without payload are all header.
        int used = payloadLeft == 0 ? headerBytes + payloadBytes : headerBytes;
        phase = payloadLeft == 0 ? TRAILER : PAYLOAD;
        return used;
    }

    /** How many bytes of an untagged segment must be there before it can be parsed. */
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
        SoftwareMemory target = find(key, taggedOffset, payloadBytes, Access.REMOTE_WRITE);
        if (target == null) {
            return refuse(TerminateReason.DDP_INVALID_STAG);
        }
        writeTarget = target;
        writeOffset = taggedOffset - target.address();
        return true;
    }

    /**
     * Finds memory that the peer may use in this way. The reason of a refusal is only for the local log: a peer that
     * tries keys must not learn whether one of them is closed, too short or unknown (RFC 5042, 6.1.1).
     */
    private @Nullable SoftwareMemory find(int stag, long offset, long bytes, Access right) {
        SoftwareMemory memory = domain.find(stag);
        if (!connectionMemory.isAllowed()) {
            denial = "the peer has not proved its pre-shared key yet";
        } else if (memory == null) {
            denial = "nothing is registered with this STag";
        } else if (!memory.isFor(connectionMemory)) {
            denial = "the memory is for other peers";
        } else if (!memory.isOpenToPeers()) {
            denial = "the memory is closed, or its key was invalidated";
        } else if (!memory.allows(right)) {
            denial = "the memory was registered without " + right;
        } else if (!memory.contains(offset, bytes)) {
            denial = "it exceeds the memory of " + memory.lengthBytes() + " bytes at 0x"
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
        if (!outbound.awaitsRead()) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        long sequence = outbound.awaitedSequence();
        if (sequence < 0) {
            // The ready-to-receive read requested no bytes.
            return (payloadBytes == 0 && last) || refuse(TerminateReason.DDP_BOUNDS);
        }
        int slot = sendRing.slot(sequence);
        if (!read.isActive()) {
            sendRing.aim(slot, read);
        }
        int left = outbound.awaitedEndBytes() - read.placedBytes();
        if (payloadBytes > left || (last && payloadBytes < left)) {
            return refuse(TerminateReason.DDP_BOUNDS);
        }
        if (payloadBytes > 0) {
            SoftwareMemory into = sendRing.region(slot, 0);
            if (key != into.remoteKey()) {
                return refuse(TerminateReason.DDP_INVALID_STAG);
            }
            if (taggedOffset != into.address() + sendRing.offset(slot, 0) + read.placedBytes()) {
                return refuse(TerminateReason.DDP_BOUNDS);
            }
        }
        return true;
    }

    private boolean beginSend(MemorySegment segment, int at, int end) {
        if (queue != Rdmap.QUEUE_SEND) {
            return refuse(TerminateReason.DDP_INVALID_QUEUE);
        }
        if (messageNumber != nextSendNumber) {
            return refuse(TerminateReason.DDP_INVALID_MSN);
        }
        if (messageOffset != (receive.isActive() ? receive.placedBytes() : 0)) {
            return refuse(TerminateReason.DDP_INVALID_OFFSET);
        }
        boolean isWhole = at + payloadBytes + Rdmap.trailerBytes(ulpduBytes) <= end;
        taken = isWhole && isMessage() && sink.onMessage(segment, at, payloadBytes);
        if (taken) {
            messageBytes += payloadBytes;
            copiedBytes += payloadBytes;
            payloadLeft = 0;
            return true;
        }
        if (!receive.isActive() && !sink.takeReceive(receive)) {
            return refuse(TerminateReason.DDP_NO_BUFFER);
        }
        if (payloadBytes > receive.capacityBytes() - receive.placedBytes()) {
            sink.receiveTooSmall();
            return refuse(TerminateReason.DDP_TOO_LONG);
        }
        return true;
    }

    /** Whether the segment is a message, and nothing besides. */
    private boolean isMessage() {
        boolean isPlain = opcode == Rdmap.SEND || opcode == Rdmap.SEND_SOLICITED;
        return isPlain && last && !receive.isActive() && !immediateHeld;
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
        if (inbound.isFull()) {
            return refuse(TerminateReason.DDP_NO_BUFFER);
        }
        int sinkStag = buffer.getInt(at);
        long sinkOffset = buffer.getLong(at + 4);
        int bytes = buffer.getInt(at + 12);
        int sourceStag = buffer.getInt(at + 16);
        long sourceOffset = buffer.getLong(at + 20);
        nextReadNumber++;
        if (bytes == 0) {
            inbound.addRead(null, 0, 0, sinkStag, sinkOffset);
            return true;
        }
        long unsignedBytes = bytes & 0xffffffffL;
        if (wraps(sourceOffset, unsignedBytes)) {
            return refuse(TerminateReason.RDMAP_TO_WRAP);
        }
        if (bytes < 0) {
            // No message is that long, whatever the region.
            return refuse(TerminateReason.RDMAP_BOUNDS);
        }
        SoftwareMemory source = find(sourceStag, sourceOffset, unsignedBytes, Access.REMOTE_READ);
        if (source == null) {
            return refuse(TerminateReason.RDMAP_INVALID_STAG);
        }
        inbound.addRead(source, sourceOffset - source.address(), bytes, sinkStag, sinkOffset);
        return true;
    }

    private boolean atomicRequest(ByteBuffer buffer, int at) {
        if (!atomics) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        if (!checkRequest(Rdmap.QUEUE_READ_REQUEST, nextReadNumber, Rdmap.ATOMIC_REQUEST_BYTES)) {
            return false;
        }
        if (inbound.isFull()) {
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
        SoftwareMemory target = find(buffer.getInt(at + 8), offset, Long.BYTES, Access.REMOTE_ATOMIC);
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
                    ? FieldAtomics.fetchAndAdd(segment, from, value, mask)
                    : FieldAtomics.compareAndSwap(segment, from, compare, compareMask, value, mask);
        } finally {
            target.exit();
        }
        nextReadNumber++;
        inbound.addAtomic(buffer.getInt(at + 4), old);
        return true;
    }

    private boolean atomicResponse(ByteBuffer buffer, int at) {
        if (!outbound.awaitsResponse() || outbound.awaitsRead()) {
            return refuse(TerminateReason.RDMAP_UNEXPECTED_OPCODE);
        }
        if (!checkRequest(Rdmap.QUEUE_ATOMIC_RESPONSE, nextAtomicResponseNumber, Rdmap.ATOMIC_RESPONSE_BYTES)) {
            return false;
        }
        if (buffer.getInt(at) != outbound.awaitedNumber()) {
            return refuse(TerminateReason.RDMAP_OPERATION_UNSPECIFIED);
        }
        nextAtomicResponseNumber++;
        int slot = sendRing.slot(outbound.awaitedSequence());
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
        if (!sink.takeReceive(receive)) {
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
        sink.onTerminate(message);
        return false;
    }

    private void finishSegment() {
        segments++;
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
                    if (!outbound.awaitsFirstPart()) {
                        read.end();
                    }
                    outbound.answered();
                    sink.onAnswered();
                }
            }
            case Rdmap.ATOMIC_RESPONSE -> {
                outbound.answered();
                sink.onAnswered();
            }
            case Rdmap.READ_REQUEST, Rdmap.ATOMIC_REQUEST -> {
                // The end of the turn sends the response.
            }
            case Rdmap.IMMEDIATE, Rdmap.IMMEDIATE_SOLICITED -> {
                nextSendNumber++;
                if (!immediateHeld) {
                    sink.onReceived(
                            receive,
                            lastWriteBytes,
                            EndpointHandler.WITH_IMMEDIATE | EndpointHandler.REMOTE_WRITE,
                            heldImmediate);
                }
            }
            default -> {
                if (last) {
                    nextSendNumber++;
                    if (!taken) {
                        finishSend();
                    }
                }
            }
        }
    }

    private void finishSend() {
        int flags = 0;
        int word = 0;
        if (opcode == Rdmap.SEND_INVALIDATE || opcode == Rdmap.SEND_SOLICITED_INVALIDATE) {
            SoftwareMemory region = domain.find(key);
            if (region == null || !region.isOwnOf(connectionMemory) || !region.invalidate()) {
                denial = "it is not a key that only this peer was given";
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
        sink.onReceived(receive, receive.placedBytes(), flags, word);
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
        sink.onRefused(
                reason,
                Rdmap.name(opcode) + " (" + what + ")",
                denial,
                Arrays.copyOf(message.array(), message.position()));
        return false;
    }

    private int refuseBare(TerminateReason reason, String what) {
        byte[] message =
                ByteBuffer.allocate(4).putShort((short) reason.control()).array();
        sink.onRefused(reason, what, null, message);
        return 0;
    }

    /** The connection has ended. */
    void close() {
        read.end();
        phase = HEADER;
        writeTarget = null;
    }
}
