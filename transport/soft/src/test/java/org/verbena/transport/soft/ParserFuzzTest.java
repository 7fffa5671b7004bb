package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.GuardedRegions;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.WorkRing;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.FuzzLoop;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * The parser alone, fed streams that know its grammar: messages of all kinds with the right numbers, in pieces,
 * interleaved as DDP allows, of which some are then changed a little: a field to one of its interesting values, a bit,
 * a length, a segment lost, doubled or moved. Each stream comes in pieces of any size. What is not changed must pass to
 * its end; what is must end in one refusal at the most; no byte outside of what the peer may touch may change; and the
 * outcome must not depend on how the stream was cut into pieces.
 *
 * <p>{@code -Dverbena.fuzz.parserExecutions=100000000} for long runs. The n-th execution has the seed that is printed
 * plus n: a failure names it, and {@code -Dverbena.fuzz.seed=} with one execution repeats it.
 */
class ParserFuzzTest {
    private static final int TABLE_BYTES = GuardedRegions.TABLE_BYTES;
    private static final int RECEIVES = 8;
    private static final int RECEIVE_BYTES = 300;
    private static final int SINK_BYTES = 512;
    private static final int READ_DEPTH = 12;
    private static final int STREAM_BYTES = 64 * 1024;
    private static final long[] INTERESTING = {
        0,
        1,
        2,
        3,
        7,
        8,
        0x7f,
        0x80,
        0xff,
        0x100,
        0x7fff,
        0x8000,
        0xffff,
        0x7fffffffL,
        0x80000000L,
        0xffffffffL,
        Long.MAX_VALUE,
        Long.MIN_VALUE,
        -1,
        -2,
        -8
    };

    private final FuzzLoop loop = new FuzzLoop("the parser", "parserExecutions", 150_000);
    private final GuardedRegions regions = new GuardedRegions(RECEIVES * RECEIVE_BYTES, READ_DEPTH * SINK_BYTES);
    private final SoftwareDomain domain = regions.domain;
    private final ConnectionMemory own = regions.own;
    private final RegisteredMemory table = regions.table;
    private final RegisteredMemory anothers = regions.anothers;
    private final RegisteredMemory secret = regions.secret;
    private final RegisteredMemory closed = regions.closed;
    private final RegisteredMemory receives = regions.receives;
    private final RegisteredMemory sinks = regions.sinks;
    private final CRC32C crc = new CRC32C();

    // Of the execution.
    private SplittableRandom random = new SplittableRandom(0);
    private boolean withCrc;
    private boolean ours;
    private final List<byte[]> stream = new ArrayList<>();
    private final List<byte[]> sendLane = new ArrayList<>();
    private final List<byte[]> responseLane = new ArrayList<>();
    private final List<byte[]> otherLane = new ArrayList<>();

    // Counted over all.
    private long passed;
    private long refused;
    private long terminated;
    private long segments;

    @AfterEach
    void close() {
        regions.close();
    }

    @Test
    @Timeout(value = 12, unit = TimeUnit.HOURS)
    void survivesChangedStreams() {
        loop.run(
                this::execute,
                () -> passed + " passed, " + refused + " were refused, " + terminated + " terminated; " + segments
                        + " segments");
        long executions = loop.executions();
        if (executions >= 10_000) {
            assertThat(passed).as("streams that passed").isGreaterThan(executions / 5);
            assertThat(refused).as("streams that were refused").isGreaterThan(executions / 5);
        }
    }

    /** Startup frames: any input is either a frame, or rejected with a reason. */
    @Test
    void survivesChangedStartupFrames() {
        FuzzLoop frames = new FuzzLoop("startup frames", "parserExecutions", 150_000);
        long executions = frames.executions();
        random = new SplittableRandom(frames.seed());
        long decoded = 0;
        for (long i = 0; i < executions; i++) {
            byte[] privateData = new byte[random.nextInt(60)];
            fill(privateData);
            boolean reply = random.nextBoolean();
            EnhancedSetup setup = random.nextBoolean() ? EnhancedSetup.decode(random.nextInt()) : null;
            MpaFrame good = new MpaFrame(
                    reply,
                    random.nextBoolean(),
                    random.nextBoolean(),
                    reply && random.nextBoolean(),
                    setup == null ? 1 : 2,
                    setup,
                    privateData);
            byte[] bytes = good.encode();
            int changes = random.nextInt(3);
            for (int change = 0; change < changes; change++) {
                changeField(bytes);
            }
            int length = random.nextInt(8) == 0 ? random.nextInt(bytes.length + 1) : bytes.length;
            try {
                MpaFrame.checkKey(bytes, length, reply);
                MpaFrame frame = MpaFrame.decode(bytes, length, reply);
                if (changes == 0 && length == bytes.length) {
                    assertThat(frame.encode()).isEqualTo(bytes);
                }
                decoded++;
            } catch (MpaException expected) {
                assertThat(changes > 0 || length < bytes.length)
                        .as("a good frame: " + expected.getMessage())
                        .isTrue();
            }
        }
        assertThat(decoded).isGreaterThan(executions / 4);
    }

    private void execute(long seed) {
        random = new SplittableRandom(seed);
        withCrc = random.nextInt(4) == 0;
        ours = random.nextInt(4) != 0;
        Trial trial = new Trial();
        generate(trial);
        boolean changed = random.nextInt(8) < 5 && change();
        byte[] bytes = concatenated();
        trial.feed(bytes, random.nextBoolean());
        if (!changed) {
            boolean wasRefused = trial.refusal != null && !trial.refusal.startsWith("TERMINATE");
            if (!trial.problems.isEmpty() || trial.unused != 0 || wasRefused) {
                throw new AssertionError("a good stream was refused: " + trial.problems + " " + trial.refusal
                        + ", left " + trial.unused);
            }
        }
        check(trial);
        if (trial.refusal == null) {
            passed++;
        } else if (trial.refusal.startsWith("TERMINATE")) {
            terminated++;
        } else {
            refused++;
        }
        boolean lentStill = regions.isLentOpen();
        if (seed % 8 == 0 && lentStill) {
            Trial whole = new Trial();
            whole.feed(bytes, false);
            check(whole);
            // Atomics and writes of the first trial are in the memory that the second one begins with: old values may
            // differ, what happens may not.
            if (!whole.events.toString().equals(trial.events.toString())) {
                throw new AssertionError("it depends on the pieces:\n" + trial.events + "\n" + whole.events);
            }
            whole.end();
        }
        trial.end();
        if (!lentStill) {
            regions.lendAgain();
        }
    }

    private void check(Trial trial) {
        if (!trial.problems.isEmpty()) {
            throw new AssertionError(trial.problems.toString());
        }
        regions.check();
    }

    // ---- the stream

    private void generate(Trial trial) {
        sendLane.clear();
        responseLane.clear();
        otherLane.clear();
        int sends = random.nextInt(RECEIVES);
        int number = 1;
        for (int i = 0; i < sends; i++) {
            number = addSend(number, trial);
        }
        addResponses(trial);
        int others = random.nextInt(8);
        int reads = 1;
        for (int i = 0; i < others; i++) {
            switch (random.nextInt(ours ? 4 : 3)) {
                case 0, 1 -> addWrite();
                case 2 -> otherLane.add(readRequest(reads++));
                default -> otherLane.add(atomicRequest(reads++));
            }
        }
        stream.clear();
        int[] at = new int[3];
        List<List<byte[]>> lanes = List.of(sendLane, responseLane, otherLane);
        int left = sendLane.size() + responseLane.size() + otherLane.size();
        while (left > 0) {
            int lane = random.nextInt(3);
            if (at[lane] < lanes.get(lane).size()) {
                stream.add(lanes.get(lane).get(at[lane]++));
                left--;
            }
        }
        if (random.nextInt(16) == 0) {
            byte[] message = new byte[4 + 4 * random.nextInt(13)];
            fill(message);
            stream.add(untagged(0x4147, 0, 2, 1, 0, message));
        }
    }

    private int addSend(int first, Trial trial) {
        int number = first;
        if (ours && random.nextInt(6) == 0) {
            boolean alone = random.nextBoolean();
            sendLane.add(
                    untagged(0x4148 + random.nextInt(2), 0, 0, number++, 0, words(alone ? 0 : 1, random.nextInt())));
            if (alone) {
                return number;
            }
        }
        int bytes = random.nextInt(RECEIVE_BYTES + 1);
        boolean invalidate = random.nextInt(12) == 0 && trial.lend();
        int opcode = (invalidate ? 4 : 3) + 2 * random.nextInt(2);
        int offset = 0;
        do {
            int payload = random.nextInt(3) == 0 ? random.nextInt(bytes - offset + 1) : bytes - offset;
            boolean last = offset + payload == bytes && (payload > 0 || random.nextBoolean() || offset == bytes);
            byte[] data = new byte[payload];
            fill(data);
            sendLane.add(untagged(
                    (last ? 0x4140 : 0x0140) | opcode,
                    invalidate ? regions.lent.remoteKey() : 0,
                    0,
                    number,
                    offset,
                    data));
            offset += payload;
            if (last) {
                break;
            }
        } while (true);
        return number + 1;
    }

    private void addWrite() {
        int bytes = random.nextInt(TABLE_BYTES + 1);
        int offset = random.nextInt(TABLE_BYTES - bytes + 1);
        int done = 0;
        boolean last;
        do {
            int payload = random.nextInt(3) == 0 ? random.nextInt(bytes - done + 1) : bytes - done;
            last = done + payload == bytes;
            byte[] data = new byte[payload];
            fill(data);
            boolean nowhere = payload == 0 && random.nextBoolean();
            otherLane.add(tagged(
                    last ? 0xc140 : 0x8140,
                    nowhere ? random.nextInt() : table.remoteKey(),
                    nowhere ? random.nextLong() : table.address() + offset + done,
                    data));
            done += payload;
        } while (!last);
    }

    private byte[] readRequest(int number) {
        int bytes = random.nextInt(TABLE_BYTES + 1);
        byte[] header = ByteBuffer.allocate(28)
                .putInt(random.nextInt())
                .putLong(random.nextLong())
                .putInt(bytes)
                .putInt(table.remoteKey())
                .putLong(table.address() + random.nextInt(TABLE_BYTES - bytes + 1))
                .array();
        return untagged(0x4141, 0, 1, number, 0, header);
    }

    private byte[] atomicRequest(int number) {
        byte[] header = ByteBuffer.allocate(52)
                .putInt(random.nextBoolean() ? 0 : 2)
                .putInt(number)
                .putInt(table.remoteKey())
                .putLong(table.address() + 8L * random.nextInt(TABLE_BYTES / 8))
                .putLong(random.nextLong())
                .putLong(random.nextBoolean() ? 0 : random.nextLong())
                .putLong(random.nextLong())
                .putLong(random.nextLong())
                .array();
        return untagged(0x414a, 0, 1, number, 0, header);
    }

    /** Answers some of the reads that the trial has out, the last one perhaps in part. */
    private void addResponses(Trial trial) {
        int atomics = 1;
        int count = random.nextInt(trial.out.size() + 1);
        for (int i = 0; i < count; i++) {
            int bytes = trial.out.get(i);
            if (bytes < 0) {
                responseLane.add(untagged(
                        0x414b,
                        0,
                        3,
                        atomics++,
                        0,
                        ByteBuffer.allocate(12)
                                .putInt(i + 1)
                                .putLong(random.nextLong())
                                .array()));
                continue;
            }
            int done = 0;
            boolean last;
            do {
                int payload = random.nextInt(3) == 0 ? random.nextInt(bytes - done + 1) : bytes - done;
                last = done + payload == bytes;
                byte[] data = new byte[payload];
                fill(data);
                responseLane.add(tagged(
                        last ? 0xc142 : 0x8142,
                        sinks.remoteKey(),
                        sinks.address() + (long) i * SINK_BYTES + done,
                        data));
                done += payload;
            } while (!last);
        }
    }

    private void fill(byte[] bytes) {
        long word = random.nextLong();
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (word >>> (i & 7) * 8);
        }
    }

    private static byte[] words(int high, int low) {
        return ByteBuffer.allocate(8).putInt(high).putInt(low).array();
    }

    private byte[] tagged(int control, int stag, long offset, byte[] payload) {
        return fpdu(ByteBuffer.allocate(framed(14 + payload.length))
                .putShort((short) (14 + payload.length))
                .putShort((short) control)
                .putInt(stag)
                .putLong(offset)
                .put(payload));
    }

    private byte[] untagged(int control, int key, int queue, int number, int offset, byte[] payload) {
        return fpdu(ByteBuffer.allocate(framed(18 + payload.length))
                .putShort((short) (18 + payload.length))
                .putShort((short) control)
                .putInt(key)
                .putInt(queue)
                .putInt(number)
                .putInt(offset)
                .put(payload));
    }

    private static int framed(int ulpdu) {
        return 2 + ulpdu + (-(2 + ulpdu) & 3) + 4;
    }

    private byte[] fpdu(ByteBuffer of) {
        seal(of.array());
        return of.array();
    }

    /** The CRC, if there is one. */
    private void seal(byte[] fpdu) {
        if (withCrc && fpdu.length >= 4) {
            crc.reset();
            crc.update(fpdu, 0, fpdu.length - 4);
            ByteBuffer.wrap(fpdu).putInt(fpdu.length - 4, Integer.reverseBytes((int) crc.getValue()));
        }
    }

    private byte[] concatenated() {
        int length = 0;
        for (byte[] segment : stream) {
            length += segment.length;
        }
        byte[] all = new byte[Math.min(length, STREAM_BYTES)];
        int at = 0;
        for (byte[] segment : stream) {
            int part = Math.min(segment.length, all.length - at);
            System.arraycopy(segment, 0, all, at, part);
            at += part;
        }
        segments += stream.size();
        return all;
    }

    // ---- changes

    /** Changes the stream here and there; false if there was nothing to change. */
    private boolean change() {
        if (stream.isEmpty()) {
            return false;
        }
        int changes = 1 + random.nextInt(3);
        for (int i = 0; i < changes; i++) {
            changeOne();
        }
        return true;
    }

    private void changeOne() {
        if (stream.isEmpty()) {
            return;
        }
        int index = random.nextInt(stream.size());
        byte[] segment = stream.get(index);
        if (segment.length == 0) {
            stream.remove(index);
            return;
        }
        switch (random.nextInt(10)) {
            case 0, 1, 2, 3 -> {
                changeField(segment);
                seal(segment);
            }
            case 4 -> {
                segment[random.nextInt(segment.length)] ^= (byte) (1 << random.nextInt(8));
                if (random.nextBoolean()) {
                    seal(segment);
                }
            }
            case 5 -> stream.remove(index);
            case 6 -> stream.add(random.nextInt(stream.size() + 1), segment.clone());
            case 7 -> stream.set(index, java.util.Arrays.copyOf(segment, random.nextInt(segment.length)));
            case 8 -> {
                byte[] noise = new byte[random.nextInt(80)];
                for (int i = 0; i < noise.length; i++) {
                    noise[i] = (byte) random.nextInt();
                }
                stream.add(random.nextInt(stream.size() + 1), noise);
            }
            default -> {
                // Another's, a closed, a secret, a regions.lent key, in its place or near it.
                RegisteredMemory region = switch (random.nextInt(5)) {
                    case 0 -> anothers;
                    case 1 -> closed;
                    case 2 -> secret;
                    case 3 -> regions.lent;
                    default -> table;
                };
                boolean isTagged = segment.length > 2 && segment[2] < 0;
                int at = isTagged ? 4 : random.nextBoolean() ? 4 : 36;
                if (segment.length >= at + 16) {
                    ByteBuffer.wrap(segment)
                            .putInt(at, region.remoteKey())
                            .putLong(at + 4, region.address() + random.nextInt(-9, TABLE_BYTES + 10));
                }
                seal(segment);
            }
        }
    }

    private void changeField(byte[] segment) {
        ByteBuffer buffer = ByteBuffer.wrap(segment);
        int width = 1 << random.nextInt(4);
        int fields = Math.min(segment.length, 72) / width;
        if (fields == 0) {
            return;
        }
        int at = random.nextInt(fields) * width;
        long before = switch (width) {
            case 1 -> buffer.get(at);
            case 2 -> buffer.getShort(at);
            case 4 -> buffer.getInt(at);
            default -> buffer.getLong(at);
        };
        long value = switch (random.nextInt(4)) {
            case 0 -> INTERESTING[random.nextInt(INTERESTING.length)];
            case 1 -> before + random.nextInt(-9, 10);
            case 2 -> before ^ 1L << random.nextInt(64);
            default -> random.nextLong();
        };
        switch (width) {
            case 1 -> buffer.put(at, (byte) value);
            case 2 -> buffer.putShort(at, (short) value);
            case 4 -> buffer.putInt(at, (int) value);
            default -> buffer.putLong(at, value);
        }
    }

    /** One parser and what is around it. */
    private final class Trial implements SegmentSink {
        final List<String> problems = new ArrayList<>(0);
        final StringBuilder events = new StringBuilder();
        final List<Integer> out = new ArrayList<>();

        @Nullable String refusal;

        int unused;
        private boolean lends;
        private final SendRing ring = new SendRing(READ_DEPTH, 2, 0);
        private final OutboundReads outbound = new OutboundReads(ring, READ_DEPTH);
        private final InboundReads inbound = new InboundReads(READ_DEPTH);
        private final WorkRing receiveRing = new WorkRing(RECEIVES, 2);
        private final FpduParser parser =
                new FpduParser(this, domain, own, ring, outbound, inbound, withCrc ? new CRC32C() : null);
        private long nextReceive;

        Trial() {
            parser.setFeatures(ours ? PeerFeatures.OURS : 0);
            // The same for both trials of an execution.
            Random shape = new Random(withCrc ? 1 : 2);
            ScatterGatherList list = new ScatterGatherList(2);
            for (int i = 0; i < RECEIVES; i++) {
                int first = shape.nextInt(RECEIVE_BYTES);
                list.clear()
                        .add(receives, (long) i * RECEIVE_BYTES, first)
                        .add(receives, (long) i * RECEIVE_BYTES + first, RECEIVE_BYTES - first);
                receiveRing.add(i, list);
            }
            WorkRequest request = new WorkRequest(2);
            for (int i = 0; i < READ_DEPTH; i++) {
                if (i % 4 == 3) {
                    request.asFetchAndAdd(i, 0, 0x1000, 0x77, 1).buffers().add(sinks, (long) i * SINK_BYTES, 8);
                    out.add(-1);
                } else {
                    int bytes = shape.nextInt(SINK_BYTES + 1);
                    request.asRead(i, 0, 0x1000, 0x77).buffers().add(sinks, (long) i * SINK_BYTES, bytes);
                    out.add(bytes);
                }
                ring.add(request);
                outbound.add(i);
            }
        }

        /** Whether the stream may invalidate the key that is regions.lent: once. */
        boolean lend() {
            boolean first = !lends;
            lends = true;
            return first;
        }

        void feed(byte[] bytes, boolean inPieces) {
            MemorySegment segment = arena0;
            ByteBuffer buffer = buffer0.clear();
            int start = 0;
            int kept = 0;
            int at = 0;
            while (at < bytes.length && isOpen()) {
                int direct = parser.directBytes();
                if (inPieces && direct > 0 && kept == 0 && random.nextBoolean()) {
                    ByteBuffer room = parser.beginDirect();
                    if (room == null) {
                        break;
                    }
                    int now = Math.min(random.nextInt(room.remaining() + 1), bytes.length - at);
                    room.put(bytes, at, now);
                    parser.endDirect(now);
                    at += now;
                    continue;
                }
                int piece = inPieces
                        ? Math.min(bytes.length - at, 1 + random.nextInt(random.nextBoolean() ? 24 : 2_000))
                        : bytes.length - at;
                MemorySegment.copy(bytes, at, segment, ValueLayout.JAVA_BYTE, kept, piece);
                at += piece;
                int end = kept + piece;
                start = parser.parse(buffer, segment, 0, end);
                if (start < 0 || start > end) {
                    problems.add("took " + start + " of " + end);
                    break;
                }
                kept = end - start;
                MemorySegment.copy(segment, start, segment, 0, kept);
            }
            unused = isOpen() ? kept : 0;
            parser.close();
        }

        void end() {
            if (parser.receiveInProgress().isActive()) {
                parser.receiveInProgress().end();
            }
            while (!receiveRing.isEmpty()) {
                receiveRing.removeHead();
            }
            while (!ring.isEmpty()) {
                ring.removeHead();
            }
        }

        @Override
        public boolean isOpen() {
            return refusal == null;
        }

        @Override
        public boolean onSegment(int opcode, int key, long offset, int payloadBytes) {
            if (!isOpen()) {
                problems.add("a segment after the end");
            }
            return true;
        }

        @Override
        public boolean takeReceive(Placement into) {
            if (receiveRing.isEmpty()) {
                return false;
            }
            receiveRing.moveHeadTo(into);
            return true;
        }

        /** Some of them: each stands for a receive, so that it does not matter which. */
        @Override
        public boolean onMessage(MemorySegment memory, long at, int bytes) {
            if (receiveRing.isEmpty() || bytes > RECEIVE_BYTES || random.nextInt(3) > 0) {
                return false;
            }
            receiveRing.removeHead();
            nextReceive++;
            events.append('R').append(memory.asSlice(at, bytes).byteSize()).append("/0 ");
            return true;
        }

        @Override
        public void receiveTooSmall() {}

        @Override
        public void onReceived(Placement receive, int bytes, int flags, int word) {
            if (receive.workId() != nextReceive || bytes < 0) {
                problems.add("receive " + receive.workId() + " where " + nextReceive + " was next");
            }
            if (bytes > RECEIVE_BYTES && (flags & EndpointHandler.REMOTE_WRITE) == 0) {
                problems.add(bytes + " bytes in a receive");
            }
            nextReceive++;
            events.append('R').append(bytes).append('/').append(flags).append(' ');
            receive.end();
        }

        @Override
        public void onAnswered() {
            events.append("A ");
        }

        @Override
        public void onRefused(TerminateReason reason, String what, @Nullable String denial, byte[] message) {
            end("refused " + reason);
            if (message.length < 4 || message.length > Rdmap.MAX_TERMINATE_BYTES) {
                problems.add("a Terminate message of " + message.length + " bytes");
            }
        }

        @Override
        public void onTerminate(byte[] message) {
            end("TERMINATE");
        }

        private void end(String how) {
            if (refusal != null) {
                problems.add(how + " after " + refusal);
            }
            refusal = how;
            events.append(how);
        }
    }

    /** Where streams are fed from. */
    private final MemorySegment arena0 = Arena.ofAuto().allocate(STREAM_BYTES + Rdmap.MAX_FPDU_BYTES, 8);

    private final ByteBuffer buffer0 = arena0.asByteBuffer();
}
