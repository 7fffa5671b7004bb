package org.verbena.transport.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.WorkRing;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** A receiver with the queues around it, and without a socket, a loop or a second thread: a test writes its ring. */
final class FedReceiver implements RingReceiver.Owner {
    static final int RING_BYTES = Ring.MIN_BYTES;
    static final int READ_DEPTH = 8;
    static final int RECEIVE_BYTES = 600;
    private static final int MAX_SGES = 2;
    private static final long DATA = Ring.data(0, RING_BYTES);

    final MemorySegment memory;
    final SendRing sends = new SendRing(READ_DEPTH, MAX_SGES, 0);

    /** As a loop's shared receive queue. */
    final WorkRing posted;

    final RingReceiver receiver;
    final InboundReads inboundReads = new InboundReads(READ_DEPTH);
    final RingSender sender;

    /** What happened, in words. */
    final StringBuilder events = new StringBuilder();

    /** Receives that were reported, by their work ids. */
    final List<Long> reported = new ArrayList<>();

    /** Whether the next message that is offered is taken where it lies. */
    BooleanSupplier takes = () -> false;

    /** How many were. */
    int taken;

    /** How it ended. */
    @Nullable String end;

    private final RingReader reader;
    private final DirectOperations direct;
    private final long receives;
    private long tail;

    /**
     * With receives posted.
     *
     * @param memory a file's worth of zeros
     * @param domain the keys
     * @param own what was registered for this peer alone
     * @param into where messages go, {@link #RECEIVE_BYTES} each
     * @param receives how many are posted
     */
    FedReceiver(
            MemorySegment memory, SoftwareDomain domain, ConnectionMemory own, RegisteredMemory into, int receives) {
        this.memory = memory;
        this.receives = receives;
        posted = new WorkRing(receives, MAX_SGES);
        for (int i = 0; i < receives; i++) {
            long at = (long) i * RECEIVE_BYTES;
            ScatterGatherList list =
                    new ScatterGatherList(MAX_SGES).add(into, at, 100).add(into, at + 100, RECEIVE_BYTES - 100);
            posted.add(i, list);
        }
        reader = new RingReader(memory, 0, RING_BYTES);
        RegionTable table = RegionTable.of(memory, 0, RING_BYTES);
        direct = new DirectOperations(table, new PeerFiles(null), sends);
        sender = new RingSender(new RingWriter(memory, 1, RING_BYTES), sends, inboundReads, direct, READ_DEPTH);
        receiver = new RingReceiver(reader, this, new PeerAccess(domain, own), sends, sender, inboundReads);
    }

    static MemorySegment newMemory(Arena arena) {
        return arena.allocate(Ring.fileBytes(RING_BYTES), 4096);
    }

    /** Has both rings begin as new ones; what is in them stays. */
    static void reset(MemorySegment memory) {
        for (int direction = 0; direction < 2; direction++) {
            memory.asSlice(Ring.control(direction), 512).fill((byte) 0);
        }
    }

    /** Sends a read or an atomic, which the test may answer. */
    void ask(WorkRequest request) throws RingSender.RefusedException {
        sends.add(request);
        sender.pump();
    }

    /** Writes a record as it is, valid or not, where the next one begins; {@link #turn} shows it to the receiver. */
    void write(Rec record) {
        long at = DATA + (tail & RING_BYTES - 1);
        memory.set(ValueLayout.JAVA_LONG, at, record.first);
        memory.set(ValueLayout.JAVA_LONG, at + 8, record.second);
        memory.set(ValueLayout.JAVA_LONG, at + 16, record.third);
        memory.set(ValueLayout.JAVA_LONG, at + 24, record.fourth);
        MemorySegment.copy(record.payload, 0, memory, ValueLayout.JAVA_BYTE, at + 32, record.payload.length);
        tail += record.bytes();
    }

    /** Whether a record fits, in one piece and before the data's end. */
    boolean fits(Rec record) {
        long head = Ring.position(memory, Ring.control(0) + Ring.HEAD);
        return record.bytes() <= Math.min(RING_BYTES - (tail - head), untilEnd());
    }

    int untilEnd() {
        return RING_BYTES - (int) (tail & RING_BYTES - 1);
    }

    /** Fills the rest of the data up to its end. */
    void pad() {
        write(new Rec(Ring.PADDING, 0, new byte[untilEnd() - Ring.HEADER_BYTES]));
    }

    /** Has the receiver handle what was written. */
    void turn() {
        Ring.publish(memory, Ring.control(0) + Ring.TAIL, tail);
        try {
            while (isOpen() && receiver.turn() > 0) {
                boolean unused = reader.release();
                if (isOpen()) {
                    sender.pump();
                    unused = sender.publish();
                    // The peer reads all answers at once.
                    Ring.publish(memory, Ring.control(1) + Ring.HEAD, sent());
                }
            }
        } catch (RingException | IllegalStateException | RingSender.RefusedException e) {
            end = e.toString();
        }
    }

    private long sent() {
        return Ring.position(memory, Ring.control(1) + Ring.TAIL);
    }

    /** What has been taken from the queue is reported, or in progress: nothing else may be missing from it. */
    @Nullable String imbalance() {
        int inProgress = receiver.receiveInProgress().isActive() ? 1 : 0;
        int taken = (int) receives - posted.size();
        for (int i = 0; i < reported.size(); i++) {
            if (reported.get(i) != i) {
                return "reported " + reported;
            }
        }
        return taken == reported.size() + inProgress
                ? null
                : taken + " receives are taken, " + reported.size() + " reported and " + inProgress + " in progress";
    }

    /** As at the end of a connection and of its loop. */
    void close() {
        receiver.close();
        direct.close();
        Placement inProgress = receiver.receiveInProgress();
        if (inProgress.isActive()) {
            inProgress.end();
        }
        while (!posted.isEmpty()) {
            posted.removeHead();
        }
        while (!sends.isEmpty()) {
            sends.removeHead();
        }
    }

    /** A record as it lies in the ring. */
    static final class Rec {
        long first;
        long second;
        long third;
        long fourth;
        byte[] payload;

        /** Of no message: padding. */
        Rec(byte opcode, int flags, byte[] payload) {
            this(opcode, flags, payload, 0, 0, 0, payload.length, 0);
        }

        Rec(byte opcode, int flags, byte[] payload, int key, int word, long address, int totalBytes, int id) {
            this.payload = payload;
            first = payload.length | ((long) opcode << 32) | ((long) flags << 40);
            second = (key & 0xffff_ffffL) | ((long) word << 32);
            third = address;
            fourth = (totalBytes & 0xffff_ffffL) | ((long) id << 32);
        }

        Rec(Rec other) {
            first = other.first;
            second = other.second;
            third = other.third;
            fourth = other.fourth;
            payload = other.payload;
        }

        int bytes() {
            return Ring.recordBytes(payload.length);
        }
    }

    // What the receiver finds.

    @Override
    public boolean isOpen() {
        return end == null;
    }

    @Override
    public boolean takeReceive(Placement into) {
        if (posted.isEmpty()) {
            return false;
        }
        posted.moveHeadTo(into);
        return true;
    }

    @Override
    public boolean onMessage(MemorySegment memory, long at, int bytes) {
        if (bytes > RECEIVE_BYTES || !takes.getAsBoolean()) {
            return false;
        }
        taken++;
        note(memory.asSlice(at, bytes).byteSize(), 0, 0);
        return true;
    }

    @Override
    public void onReceived(Placement receive, int bytes, int flags, int word) {
        reported.add(receive.workId());
        receive.end();
        note(bytes, flags, word);
    }

    private void note(long bytes, int flags, int word) {
        events.append("received ")
                .append(bytes)
                .append(' ')
                .append(flags)
                .append(' ')
                .append(word)
                .append('\n');
    }

    @Override
    public void onAnswered() {
        events.append("answered\n");
        while (!sends.isEmpty() && sender.isHeadDone()) {
            sends.removeHead();
        }
    }

    @Override
    public void receiveTooSmall() {
        events.append("too small\n");
    }

    @Override
    public void refuse(WorkStatus status, int request, String why) {
        if (end == null) {
            end = "refused: " + status + ": " + why;
        }
    }
}
