package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.SoftwareMemory;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** Takes records out of the ring and carries them out. Not thread-safe; confined to the loop's thread. */
final class RingReceiver {
    /** What one connection may take before others have their turn, and before what was read is answered. */
    private static final int TURN_BYTES = 256 << 10;

    /** Less than a turn may take: a peer can have no more in its ring than fits. */
    private static final int MUCH_BYTES = TURN_BYTES / 4;

    private static final int TURN_RECORDS = 256;

    private final RingReader ring;
    private final Owner owner;
    private final PeerAccess access;
    private final SendRing sends;
    private final RingSender sender;
    private final InboundReads inboundReads;
    private final Placement receive = new Placement();

    /** What an answer to a read fills. */
    private final Placement read = new Placement();

    /** Where the pieces of a write go, between two of them. */
    private @Nullable SoftwareMemory writeTarget;

    /** The opcode of the message in progress, {@link Ring#PADDING} if there is none. */
    private byte messageOpcode = Ring.PADDING;

    private boolean tookMuch;

    /** How long it is to be, as its first piece announced. */
    private int messageTotalBytes;

    /** How much of it has come. */
    private int messageBytes;

    /** The endpoint. */
    interface Owner {
        boolean isOpen();

        /** Moves the oldest receive into a placement; false if none is posted. */
        boolean takeReceive(Placement into);

        /** A message lies whole in the ring; false if it goes into a receive. */
        boolean onMessage(MemorySegment memory, long at, int bytes);

        /** A message has been placed. */
        void onReceived(Placement receive, int bytes, int flags, int word);

        /** The answer to a read or an atomic of this side is complete. */
        void onAnswered();

        /** The receive is too small for its message. */
        void receiveTooSmall();

        /** The peer did what it must not; it will be notified of its request. */
        void refuse(WorkStatus status, int request, String why);
    }

    RingReceiver(
            RingReader ring,
            Owner owner,
            PeerAccess access,
            SendRing sends,
            RingSender sender,
            InboundReads inboundReads) {
        this.ring = ring;
        this.owner = owner;
        this.access = access;
        this.sends = sends;
        this.sender = sender;
        this.inboundReads = inboundReads;
    }

    Placement receiveInProgress() {
        return receive;
    }

    /** Whether the last record was within a message. */
    boolean isUnfinished() {
        return isInMessage() || read.isActive();
    }

    /**
     * Handles what has come, up to a turn's worth.
     *
     * @return records
     * @throws RingException the peer does not keep to the format
     */
    int turn() {
        int records = 0;
        int bytes = 0;
        while (records < TURN_RECORDS && bytes < TURN_BYTES && owner.isOpen() && ring.next()) {
            records++;
            if (ring.opcode() != Ring.PADDING) {
                bytes += ring.payloadBytes();
            }
            handle();
            if (owner.isOpen()) {
                ring.consume();
            }
        }
        tookMuch = records >= TURN_RECORDS || bytes >= MUCH_BYTES;
        return records;
    }

    /** Whether the last turn took so much that other connections are to have their turns before the next. */
    boolean tookMuch() {
        return tookMuch;
    }

    /** Releases a message in progress, except its receive. */
    void close() {
        if (read.isActive()) {
            read.end();
        }
        writeTarget = null;
    }

    private void handle() {
        switch (ring.opcode()) {
            case Ring.PADDING -> {}
            case Ring.SEND -> onSend();
            case Ring.WRITE -> onWrite();
            case Ring.READ_REQUEST -> onReadRequest();
            case Ring.READ_RESPONSE -> onReadResponse();
            case Ring.ATOMIC_REQUEST -> onAtomicRequest();
            case Ring.ATOMIC_RESPONSE -> onAtomicResponse();
            case Ring.WRITTEN -> onWritten();
            default -> throw new RingException("a record with opcode " + ring.opcode());
        }
    }

    private boolean isInMessage() {
        return messageOpcode != Ring.PADDING;
    }

    /** Checks that the piece is the next of the message in progress, or the first of one. */
    private void checkOrder() {
        if (ring.has(Ring.FIRST) == isInMessage()) {
            throw new RingException(isInMessage() ? "a message within another" : "the rest of no message");
        }
        if (!isInMessage()) {
            messageOpcode = ring.opcode();
            messageTotalBytes = ring.totalBytes();
            messageBytes = 0;
        } else if (ring.opcode() != messageOpcode || ring.totalBytes() != messageTotalBytes) {
            throw new RingException("a piece with opcode " + ring.opcode() + " of " + ring.totalBytes()
                    + " bytes in a message with opcode " + messageOpcode + " of " + messageTotalBytes);
        }
        messageBytes += ring.payloadBytes();
        boolean complete = messageBytes == messageTotalBytes;
        if (messageBytes < 0 || messageBytes > messageTotalBytes || complete != ring.has(Ring.LAST)) {
            throw new RingException("a message of " + messageTotalBytes + " bytes with " + messageBytes);
        }
        if (complete) {
            messageOpcode = Ring.PADDING;
        }
    }

    private void onSend() {
        if (!isInMessage()
                && ring.isWholeMessage()
                && owner.onMessage(ring.memory(), ring.payload(), ring.payloadBytes())) {
            return;
        }
        checkOrder();
        if (ring.has(Ring.FIRST) && !beginReceive()) {
            return;
        }
        int bytes = ring.payloadBytes();
        if (!receive.isActive() || bytes > receive.capacityBytes() - receive.placedBytes()) {
            throw new RingException("a message that grows");
        }
        receive.place(ring.memory(), ring.payload(), bytes);
        if (!ring.has(Ring.LAST)) {
            return;
        }
        int flags = 0;
        if (ring.has(Ring.IMMEDIATE)) {
            flags = EndpointHandler.WITH_IMMEDIATE;
        } else if (ring.has(Ring.INVALIDATE)) {
            if (!access.invalidate(ring.word())) {
                owner.refuse(WorkStatus.REMOTE_ACCESS_ERROR, ring.id(), "a key to invalidate: " + access.denial());
                return;
            }
            flags = EndpointHandler.WITH_INVALIDATE;
        }
        owner.onReceived(receive, receive.placedBytes(), flags, flags == 0 ? 0 : ring.word());
    }

    private boolean beginReceive() {
        if (!owner.takeReceive(receive)) {
            owner.refuse(
                    WorkStatus.RECEIVER_NOT_READY_RETRY_EXCEEDED,
                    ring.id(),
                    "a message of " + ring.totalBytes() + " bytes: no receive is posted");
            return false;
        }
        if (ring.totalBytes() > receive.capacityBytes()) {
            owner.receiveTooSmall();
            owner.refuse(
                    WorkStatus.REMOTE_INVALID_REQUEST_ERROR,
                    ring.id(),
                    "a message of " + ring.totalBytes() + " bytes for a receive of " + receive.capacityBytes());
            return false;
        }
        return true;
    }

    private void onWrite() {
        checkOrder();
        if (ring.totalBytes() > 0) {
            if (ring.has(Ring.FIRST)) {
                writeTarget = access.find(ring.key(), ring.address(), ring.totalBytes(), Access.REMOTE_WRITE);
                if (writeTarget == null) {
                    deny("a write");
                    return;
                }
                access.openForNextTime(writeTarget);
            }
            SoftwareMemory target = writeTarget;
            if (target == null || !target.contains(ring.address(), ring.payloadBytes())) {
                throw new RingException("a write that leaves its place");
            }
            if (!target.tryEnter()) {
                access.denyClosed();
                deny("a write");
                return;
            }
            try {
                MemorySegment.copy(
                        ring.memory(),
                        ring.payload(),
                        target.segment(),
                        ring.address() - target.address(),
                        ring.payloadBytes());
            } finally {
                target.exit();
            }
        }
        if (ring.has(Ring.LAST)) {
            writeTarget = null;
            if (ring.has(Ring.IMMEDIATE)) {
                onWritten();
            }
        }
    }

    private void onWritten() {
        if (ring.totalBytes() < 0 || isInMessage()) {
            throw new RingException("a write of " + ring.totalBytes() + " bytes, or within a message");
        }
        if (!owner.takeReceive(receive)) {
            owner.refuse(
                    WorkStatus.RECEIVER_NOT_READY_RETRY_EXCEEDED,
                    ring.id(),
                    "a write with immediate data: no receive is posted");
            return;
        }
        owner.onReceived(
                receive, ring.totalBytes(), EndpointHandler.WITH_IMMEDIATE | EndpointHandler.REMOTE_WRITE, ring.word());
    }

    private void deny(String what) {
        owner.refuse(WorkStatus.REMOTE_ACCESS_ERROR, ring.id(), what + ": " + access.denial());
    }

    private void onReadRequest() {
        int bytes = ring.totalBytes();
        if (inboundReads.isFull() || bytes < 0 || ring.payloadBytes() != 0) {
            throw new RingException("a read of " + bytes + " bytes, or more reads than agreed on");
        }
        if (bytes == 0) {
            inboundReads.addRead(null, 0, 0, ring.id(), 0);
            return;
        }
        SoftwareMemory source = access.find(ring.key(), ring.address(), bytes, Access.REMOTE_READ);
        if (source == null) {
            deny("a read");
            return;
        }
        inboundReads.addRead(source, ring.address() - source.address(), bytes, ring.id(), 0);
        access.openForNextTime(source);
    }

    private void onAtomicRequest() {
        if (inboundReads.isFull() || ring.payloadBytes() != 2 * Long.BYTES) {
            throw new RingException("an atomic of " + ring.payloadBytes() + " bytes, or more reads than agreed on");
        }
        long operand = ring.memory().get(ValueLayout.JAVA_LONG, ring.payload());
        long swap = ring.memory().get(ValueLayout.JAVA_LONG, ring.payload() + Long.BYTES);
        SoftwareMemory target = access.find(ring.key(), ring.address(), Long.BYTES, Access.REMOTE_ATOMIC);
        if (target == null) {
            deny("an atomic");
            return;
        }
        if ((ring.address() & 7) != 0) {
            owner.refuse(WorkStatus.REMOTE_INVALID_REQUEST_ERROR, ring.id(), "an atomic that is not aligned");
            return;
        }
        if (!target.tryEnter()) {
            access.denyClosed();
            deny("an atomic");
            return;
        }
        long old;
        try {
            old = PeerAccess.atomic(
                    target.segment(), ring.address() - target.address(), ring.has(Ring.ADD), operand, swap);
        } finally {
            target.exit();
        }
        inboundReads.addAtomic(ring.id(), old);
        access.openForNextTime(target);
    }

    private void onReadResponse() {
        if (!read.isActive()) {
            int slot = awaitedSlot(ring.id(), true);
            sends.aim(slot, read);
        }
        int bytes = ring.payloadBytes();
        int left = read.capacityBytes() - read.placedBytes();
        if (bytes > left || ring.has(Ring.LAST) != (bytes == left)) {
            throw new RingException("an answer of " + bytes + " bytes where " + left + " are left");
        }
        read.place(ring.memory(), ring.payload(), bytes);
        if (bytes == left) {
            read.end();
            sender.answered();
            owner.onAnswered();
        }
    }

    private void onAtomicResponse() {
        int slot = awaitedSlot(ring.id(), false);
        if (ring.payloadBytes() != Long.BYTES) {
            throw new RingException("an atomic's answer of " + ring.payloadBytes() + " bytes");
        }
        long old = ring.memory().get(ValueLayout.JAVA_LONG, ring.payload());
        sends.region(slot, 0).segment().set(ValueLayout.JAVA_LONG_UNALIGNED, sends.offset(slot, 0), old);
        sender.answered();
        owner.onAnswered();
    }

    /** The request that an answer is for: the oldest that awaits one. */
    private int awaitedSlot(int id, boolean isRead) {
        if (!sender.awaitsAnswer()) {
            throw new RingException("an answer without a request");
        }
        long sequence = sender.firstAwaited();
        int slot = sends.slot(sequence);
        boolean asked = sends.opcode(slot) == WorkRequest.Opcode.READ;
        if (RingSender.id(sequence) != id || asked != isRead) {
            throw new RingException("an answer to another request than the oldest");
        }
        return slot;
    }
}
