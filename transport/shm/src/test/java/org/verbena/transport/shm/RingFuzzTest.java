package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.shm.FedReceiver.Rec;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.GuardedRegions;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.spi.FuzzLoop;
import org.verbena.transport.spi.WorkRequest;

/**
 * The receiver of a ring, fed records that know its grammar: messages of all kinds, in pieces, with requests and
 * answers between them, of which some are then changed a little: a field to one of its interesting values, a bit, a
 * length, a record lost, doubled or moved. What is not changed must pass to its end; what is must end in one refusal at
 * the most; no byte outside of what the peer may touch may change; and after each execution the receives that are
 * missing from the shared queue are those that were reported, and one in progress.
 *
 * <p>{@code -Dverbena.fuzz.ringExecutions=100000000} for long runs. The n-th execution has the seed that is printed
 * plus n: a failure names it, and {@code -Dverbena.fuzz.seed=} with one execution repeats it.
 */
class RingFuzzTest {
    private static final int TABLE_BYTES = GuardedRegions.TABLE_BYTES;
    private static final int SINK_BYTES = 512;
    private static final int RECEIVES = 8;
    private static final long[] INTERESTING = {
        0,
        1,
        2,
        3,
        4,
        7,
        8,
        31,
        32,
        33,
        0x7f,
        0x80,
        0xff,
        599,
        600,
        601,
        0x3fff,
        0x4000,
        0x7fff_ffffL,
        0x8000_0000L,
        0xffff_ffffL,
        Long.MAX_VALUE,
        Long.MIN_VALUE,
        -1,
        -8,
        -32
    };

    private final Arena arena = Arena.ofShared();
    private final FuzzLoop loop = new FuzzLoop("the ring", "ringExecutions", 10_000);
    private final GuardedRegions regions =
            new GuardedRegions(RECEIVES * FedReceiver.RECEIVE_BYTES, FedReceiver.READ_DEPTH * SINK_BYTES);
    private final SoftwareDomain domain = regions.domain;
    private final ConnectionMemory own = regions.own;
    private final RegisteredMemory table = regions.table;
    private final RegisteredMemory anothers = regions.anothers;
    private final RegisteredMemory secret = regions.secret;
    private final RegisteredMemory closed = regions.closed;
    private final RegisteredMemory receives = regions.receives;
    private final RegisteredMemory sinks = regions.sinks;
    private final MemorySegment ring = FedReceiver.newMemory(arena);

    // Of the execution.
    private SplittableRandom random = new SplittableRandom(0);
    private final List<Rec> records = new ArrayList<>();
    private int messages;

    // Counted over all.
    private long passed;
    private long refused;
    private long written;

    @AfterEach
    void close() {
        regions.close();
        arena.close();
    }

    @Test
    @Timeout(value = 12, unit = TimeUnit.HOURS)
    void survivesChangedRecords() {
        loop.run(this::execute, () -> passed + " passed, " + refused + " were refused; " + written + " records");
        long executions = loop.executions();
        if (executions >= 10_000) {
            assertThat(passed).as("rings that passed").isGreaterThan(executions / 5);
            assertThat(refused).as("rings that were refused").isGreaterThan(executions / 5);
        }
    }

    private void execute(long seed) throws RingSender.RefusedException {
        random = new SplittableRandom(seed);
        FedReceiver fed = newReceiver();
        List<Integer> asked = ask(fed);
        generate(asked);
        boolean changed = random.nextInt(8) < 5 && change();
        feed(fed, true);
        check(fed, changed);
        String events = fed.events.toString();
        boolean isLentStill = regions.isLentOpen();
        fed.close();
        if (fed.end == null) {
            passed++;
        } else {
            refused++;
        }
        if (!isLentStill) {
            regions.lendAgain();
        } else if (!changed && seed % 8 == 0) {
            FedReceiver whole = newReceiver();
            for (int i = 0; i < asked.size(); i++) {
                ask(whole, i, asked.get(i));
            }
            feed(whole, false);
            check(whole, false);
            whole.close();
            if (!whole.events.toString().equals(events)) {
                throw new AssertionError("it depends on the pieces:\n" + events + "\n" + whole.events);
            }
        }
    }

    private FedReceiver newReceiver() {
        FedReceiver.reset(ring);
        FedReceiver made = new FedReceiver(ring, domain, own, receives, RECEIVES);
        SplittableRandom choice = random.split();
        made.takes = () -> choice.nextInt(3) == 0;
        return made;
    }

    private void check(FedReceiver fed, boolean changed) {
        String imbalance = fed.imbalance();
        if (imbalance != null) {
            throw new AssertionError(imbalance + " after " + fed.end);
        }
        if (!changed && (fed.end != null || fed.reported.size() + fed.taken != messages)) {
            throw new AssertionError("of good records with " + messages + " messages " + fed.reported.size()
                    + " were received: " + fed.end);
        }
        regions.check();
    }

    // What this side asks for.

    /** Reads, by their bytes, and atomics, -1. */
    private List<Integer> ask(FedReceiver fed) throws RingSender.RefusedException {
        List<Integer> asked = new ArrayList<>();
        int count = random.nextInt(FedReceiver.READ_DEPTH + 1);
        for (int i = 0; i < count; i++) {
            int bytes = random.nextInt(4) == 0 ? -1 : random.nextInt(SINK_BYTES + 1);
            asked.add(bytes);
            ask(fed, i, bytes);
        }
        return asked;
    }

    private void ask(FedReceiver fed, int i, int bytes) throws RingSender.RefusedException {
        WorkRequest request = new WorkRequest(2);
        if (bytes < 0) {
            request.asFetchAndAdd(i, 0, 0x1000, 0x77, 1).buffers().add(sinks, (long) i * SINK_BYTES, 8);
        } else {
            request.asRead(i, 0, 0x1000, 0x77).buffers().add(sinks, (long) i * SINK_BYTES, bytes);
        }
        fed.ask(request);
    }

    // The records.

    private void generate(List<Integer> asked) {
        List<Rec> inOrder = new ArrayList<>();
        List<Rec> requests = new ArrayList<>();
        List<Rec> answers = new ArrayList<>();
        messages = 0;
        int count = random.nextInt(RECEIVES + 1);
        boolean lends = false;
        for (int i = 0; i < count; i++) {
            switch (random.nextInt(5)) {
                case 0, 1 -> {
                    boolean invalidates = !lends && random.nextInt(12) == 0;
                    lends |= invalidates;
                    addSend(inOrder, i, invalidates);
                }
                case 2, 3 -> addWrite(inOrder, i);
                default -> {
                    messages++;
                    inOrder.add(new Rec(
                            Ring.WRITTEN,
                            Ring.FIRST | Ring.LAST | Ring.IMMEDIATE,
                            new byte[0],
                            0,
                            random.nextInt(),
                            0,
                            random.nextInt(1 << 20),
                            i));
                }
            }
        }
        int others = random.nextInt(FedReceiver.READ_DEPTH);
        for (int i = 0; i < others; i++) {
            requests.add(random.nextBoolean() ? readRequest(i) : atomicRequest(i));
        }
        int answered = random.nextInt(asked.size() + 1);
        for (int i = 0; i < answered; i++) {
            addAnswer(answers, i, asked.get(i));
        }
        records.clear();
        List<List<Rec>> lanes = List.of(inOrder, requests, answers);
        int[] at = new int[lanes.size()];
        int left = inOrder.size() + requests.size() + answers.size();
        while (left > 0) {
            int lane = random.nextInt(lanes.size());
            if (at[lane] < lanes.get(lane).size()) {
                records.add(lanes.get(lane).get(at[lane]++));
                left--;
            }
        }
    }

    private byte[] bytes(int count) {
        byte[] made = new byte[count];
        long word = random.nextLong();
        for (int i = 0; i < count; i++) {
            made[i] = (byte) (word >>> (i & 7) * 8);
        }
        return made;
    }

    /** The length of a message's next piece. */
    private int nextPiece(int left) {
        return switch (random.nextInt(6)) {
            case 0 -> 0;
            case 1 -> random.nextInt(left + 1);
            default -> left;
        };
    }

    private void addSend(List<Rec> to, int id, boolean invalidates) {
        messages++;
        int total = random.nextInt(FedReceiver.RECEIVE_BYTES + 1);
        int extra = invalidates ? Ring.INVALIDATE : random.nextInt(4) == 0 ? Ring.IMMEDIATE : 0;
        int word = invalidates ? regions.lent.remoteKey() : random.nextInt();
        int done = 0;
        boolean isFirst = true;
        do {
            int now = nextPiece(total - done);
            int flags = extra | (isFirst ? Ring.FIRST : 0) | (done + now == total ? Ring.LAST : 0);
            to.add(new Rec(Ring.SEND, flags, bytes(now), 0, word, done, total, id));
            done += now;
            isFirst = false;
            if ((flags & Ring.LAST) != 0) {
                return;
            }
        } while (true);
    }

    private void addWrite(List<Rec> to, int id) {
        int total = random.nextInt(TABLE_BYTES + 1);
        long address = table.address() + random.nextInt(TABLE_BYTES - total + 1);
        boolean isImmediate = random.nextInt(3) == 0;
        messages += isImmediate ? 1 : 0;
        int done = 0;
        boolean isFirst = true;
        do {
            int now = nextPiece(total - done);
            int flags = (isImmediate ? Ring.IMMEDIATE : 0)
                    | (isFirst ? Ring.FIRST : 0)
                    | (done + now == total ? Ring.LAST : 0);
            to.add(new Rec(Ring.WRITE, flags, bytes(now), table.remoteKey(), 5, address + done, total, id));
            done += now;
            isFirst = false;
            if ((flags & Ring.LAST) != 0) {
                return;
            }
        } while (true);
    }

    private Rec readRequest(int id) {
        int total = random.nextInt(TABLE_BYTES + 1);
        long address = table.address() + random.nextInt(TABLE_BYTES - total + 1);
        int flags = Ring.FIRST | Ring.LAST;
        return new Rec(Ring.READ_REQUEST, flags, new byte[0], table.remoteKey(), 0, address, total, id);
    }

    private Rec atomicRequest(int id) {
        long address = table.address() + 8L * random.nextInt(TABLE_BYTES / 8);
        int flags = Ring.FIRST | Ring.LAST | (random.nextBoolean() ? Ring.ADD : 0);
        return new Rec(Ring.ATOMIC_REQUEST, flags, bytes(16), table.remoteKey(), 0, address, 8, id);
    }

    private void addAnswer(List<Rec> to, int id, int total) {
        if (total < 0) {
            to.add(new Rec(Ring.ATOMIC_RESPONSE, Ring.FIRST | Ring.LAST, bytes(8), 0, 0, 0, 8, id));
            return;
        }
        int done = 0;
        boolean isLast;
        do {
            int now = nextPiece(total - done);
            isLast = done + now == total;
            to.add(new Rec(Ring.READ_RESPONSE, isLast ? Ring.LAST : 0, bytes(now), 0, 0, 0, total - done, id));
            done += now;
        } while (!isLast);
    }

    // The changes.

    private boolean change() {
        if (records.isEmpty()) {
            return false;
        }
        int changes = 1 + random.nextInt(3);
        for (int i = 0; i < changes && !records.isEmpty(); i++) {
            changeOne();
        }
        return true;
    }

    private void changeOne() {
        int index = random.nextInt(records.size());
        Rec record = new Rec(records.get(index));
        records.set(index, record);
        switch (random.nextInt(11)) {
            case 0, 1 -> changeField(record);
            case 9 -> // the end of some other message
                records.add(
                        index + 1,
                        new Rec(
                                (byte) random.nextInt(9),
                                Ring.LAST | random.nextInt(32) & ~Ring.FIRST,
                                new byte[0],
                                table.remoteKey(),
                                random.nextInt(),
                                table.address(),
                                random.nextBoolean() ? 0 : (int) record.fourth,
                                0));
            case 2 -> // another kind of record, or piece
                record.first = (record.first & 0xffff_ffffL)
                        | ((long) random.nextInt(9) << 32)
                        | ((long) random.nextInt(32) << 40);
            case 3 -> record.first ^= 1L << 32 + random.nextInt(16);
            case 4 -> records.remove(index);
            case 5 -> records.add(random.nextInt(records.size() + 1), new Rec(record));
            case 6 -> {
                Rec other = records.get(random.nextInt(records.size()));
                record.fourth = other.fourth; // another message's length and id
            }
            case 7 -> record.payload = bytes(random.nextInt(FedReceiver.RECEIVE_BYTES));
            case 8 -> {
                Rec swapped = records.get(records.size() - 1);
                records.set(records.size() - 1, record);
                records.set(index, swapped);
            }
            default -> {
                RegisteredMemory region = switch (random.nextInt(5)) {
                    case 0 -> anothers;
                    case 1 -> closed;
                    case 2 -> secret;
                    case 3 -> regions.lent;
                    default -> table;
                };
                int key = region.remoteKey();
                record.second = (key & 0xffff_ffffL) | ((long) key << 32);
                record.third = region.address() + random.nextInt(-9, TABLE_BYTES + 10);
            }
        }
    }

    private void changeField(Rec record) {
        int width = random.nextBoolean() ? 32 : 64;
        int shift = width == 32 && random.nextBoolean() ? 32 : 0;
        int field = random.nextInt(4);
        long before = switch (field) {
            case 0 -> record.first;
            case 1 -> record.second;
            case 2 -> record.third;
            default -> record.fourth;
        };
        long value = switch (random.nextInt(4)) {
            case 0 -> INTERESTING[random.nextInt(INTERESTING.length)];
            case 1 -> (before >> shift) + random.nextInt(-9, 10);
            case 2 -> before >> shift ^ 1L << random.nextInt(width);
            default -> random.nextLong();
        };
        long mask = width == 64 ? -1 : 0xffff_ffffL << shift;
        long after = (before & ~mask) | (value << shift & mask);
        switch (field) {
            case 0 -> record.first = after;
            case 1 -> record.second = after;
            case 2 -> record.third = after;
            default -> record.fourth = after;
        }
    }

    private void feed(FedReceiver fed, boolean inPieces) {
        written += records.size();
        for (Rec record : records) {
            if (!fed.fits(record)) {
                if (record.bytes() > fed.untilEnd()) {
                    fed.pad();
                }
                fed.turn();
            }
            if (!fed.isOpen()) {
                return;
            }
            fed.write(record);
            if (inPieces && random.nextInt(4) == 0) {
                fed.turn();
            }
        }
        fed.turn();
    }
}
