package org.verbena.transport.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.IllegalReferenceCountException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.channels.ReadableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A registered buffer does what Netty's plain direct buffer does: random operations, valid and not, are applied to both
 * with the same arguments, and results, exceptions, indices and contents compared.
 */
@Timeout(240)
@SuppressWarnings("deprecation") // handlers use order() all the same
class RegisteredByteBufBehaviourTest {
    private static final int MAX_CAPACITY = 3_000;

    private final CountingMemoryDomain domain = new CountingMemoryDomain();
    private final RegisteredBufferPool pool =
            new RegisteredBufferPool(domain, BufferPoolOptions.DEFAULTS.withChunkBytes(256 << 10));

    @TempDir
    private Path directory;

    /**
     * An operation of a handler, whose result is compared. Both buffers' operations draw the same arguments from the
     * given random generator.
     */
    private interface Operation {
        Object apply(ByteBuf buffer, Random random) throws Exception;
    }

    private final Map<String, Operation> operations = new LinkedHashMap<>();

    @AfterEach
    void leavesNothingBehind() {
        assertThat(pool.metrics().usedBytes()).isZero();
        pool.close();
        assertThat(domain.liveRegions()).isZero();
    }

    @Test
    void behavesLikeAPlainBuffer() throws Exception {
        defineOperations();
        long seed = System.nanoTime();
        Random random = new Random(seed);
        List<Map.Entry<String, Operation>> all = new ArrayList<>(operations.entrySet());
        for (int round = 0; round < 40; round++) {
            int capacity = random.nextInt(300);
            ByteBuf plain = Unpooled.directBuffer(capacity, MAX_CAPACITY).setZero(0, capacity);
            ByteBuf registered = pool.allocate(capacity, MAX_CAPACITY).setZero(0, capacity);
            String name = "(fresh)";
            for (int step = 0; step < 500; step++) {
                Map.Entry<String, Operation> operation = all.get(random.nextInt(all.size()));
                String before = name;
                name = operation.getKey();
                String where = String.format(
                        "seed %d, round %d, step %d: %s after %s on %s", seed, round, step, name, before, plain);
                int capacityBefore = plain.capacity();
                long arguments = random.nextLong();
                Object expected = outcome(operation.getValue(), plain, arguments);
                Object actual = outcome(operation.getValue(), registered, arguments);
                if (expected instanceof byte[] bytes) {
                    assertThat(actual).as(where).isInstanceOf(byte[].class).isEqualTo(bytes);
                } else {
                    assertThat(actual).as(where).isEqualTo(expected);
                }
                levelCapacities(plain, registered, capacityBefore);
                assertThat(registered.readerIndex()).as(where).isEqualTo(plain.readerIndex());
                assertThat(registered.writerIndex()).as(where).isEqualTo(plain.writerIndex());
                assertThat(registered.refCnt()).as(where).isEqualTo(1);
                assertThat(bytesOf(registered)).as(where).isEqualTo(bytesOf(plain));
            }
            plain.release();
            assertThat(registered.release()).isTrue();
        }
    }

    /**
     * A block leaves more room to grow into than an array has, and that room is not zeroed: makes both buffers alike.
     */
    private static void levelCapacities(ByteBuf plain, ByteBuf registered, int before) {
        int level = Math.max(plain.capacity(), registered.capacity());
        plain.capacity(level);
        registered.capacity(level);
        int from = Math.max(before, plain.writerIndex());
        if (from < level) {
            plain.setZero(from, level - from);
            registered.setZero(from, level - from);
        }
    }

    private static Object outcome(Operation operation, ByteBuf buffer, long arguments) {
        try {
            return operation.apply(buffer, new Random(arguments));
        } catch (IndexOutOfBoundsException | IllegalArgumentException outside) {
            // Netty words it in one way or the other.
            return "out of bounds";
        } catch (Exception failure) {
            return failure.getClass();
        }
    }

    private static byte[] bytesOf(ByteBuf buffer) {
        byte[] bytes = new byte[buffer.capacity()];
        buffer.getBytes(0, bytes);
        return bytes;
    }

    /** An index that is mostly valid for so many bytes. */
    private static int index(ByteBuf buffer, Random random, int length) {
        int valid = buffer.capacity() - length;
        return random.nextInt(20) == 0 || valid <= 0 ? random.nextInt(MAX_CAPACITY) - 5 : random.nextInt(valid + 1);
    }

    /** At least one byte: for none, Netty does not always check the index. */
    private static int length(ByteBuf buffer, Random random) {
        return 1 + (random.nextInt(30) == 0 ? random.nextInt(MAX_CAPACITY) : random.nextInt(64));
    }

    private static byte[] randomBytes(Random random, int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    /** Other buffers of every kind, with equal content. */
    private ByteBuf other(Random random, int length) {
        int kind = random.nextInt(7);
        byte[] bytes = randomBytes(random, length);
        return switch (kind) {
            case 0 -> Unpooled.wrappedBuffer(bytes);
            case 1 -> Unpooled.directBuffer(length).writeBytes(bytes);
            case 2 -> pool.allocate(length).writeBytes(bytes);
            case 3 ->
                new CompositeByteBuf(pool.allocator(), true, 4)
                        .addComponent(true, Unpooled.copiedBuffer(bytes, 0, length / 2))
                        .addComponent(true, pool.allocate(length).writeBytes(bytes, length / 2, length - length / 2));
            case 4 -> Unpooled.wrappedBuffer(bytes).order(ByteOrder.LITTLE_ENDIAN);
            case 5 ->
                pool.allocator()
                        .directBuffer(length + 3)
                        .writeZero(3)
                        .writeBytes(bytes)
                        .skipBytes(3)
                        .slice();
            default ->
                Unpooled.wrappedBuffer(
                        ByteBuffer.allocateDirect(length).put(bytes).flip());
        };
    }

    private void define(String name, Operation operation) {
        operations.put(name, operation);
    }

    private void defineOperations() {
        define("getByte", (b, r) -> b.getByte(index(b, r, 1)));
        define("getBoolean", (b, r) -> b.getBoolean(index(b, r, 1)));
        define("getUnsignedByte", (b, r) -> b.getUnsignedByte(index(b, r, 1)));
        define("getShort", (b, r) -> b.getShort(index(b, r, 2)));
        define("getShortLE", (b, r) -> b.getShortLE(index(b, r, 2)));
        define("getUnsignedShort", (b, r) -> b.getUnsignedShort(index(b, r, 2)));
        define("getChar", (b, r) -> b.getChar(index(b, r, 2)));
        define("getMedium", (b, r) -> b.getMedium(index(b, r, 3)));
        define("getMediumLE", (b, r) -> b.getMediumLE(index(b, r, 3)));
        define("getUnsignedMedium", (b, r) -> b.getUnsignedMedium(index(b, r, 3)));
        define("getUnsignedMediumLE", (b, r) -> b.getUnsignedMediumLE(index(b, r, 3)));
        define("getInt", (b, r) -> b.getInt(index(b, r, 4)));
        define("getIntLE", (b, r) -> b.getIntLE(index(b, r, 4)));
        define("getLong", (b, r) -> b.getLong(index(b, r, 8)));
        define("getLongLE", (b, r) -> b.getLongLE(index(b, r, 8)));
        define("getDouble", (b, r) -> Double.doubleToRawLongBits(b.getDouble(index(b, r, 8))));
        define("setByte", (b, r) -> returned(b, b.setByte(index(b, r, 1), r.nextInt())));
        define("setBoolean", (b, r) -> returned(b, b.setBoolean(index(b, r, 1), r.nextBoolean())));
        define("setShort", (b, r) -> returned(b, b.setShort(index(b, r, 2), r.nextInt())));
        define("setShortLE", (b, r) -> returned(b, b.setShortLE(index(b, r, 2), r.nextInt())));
        define("setMedium", (b, r) -> returned(b, b.setMedium(index(b, r, 3), r.nextInt())));
        define("setMediumLE", (b, r) -> returned(b, b.setMediumLE(index(b, r, 3), r.nextInt())));
        define("setInt", (b, r) -> returned(b, b.setInt(index(b, r, 4), r.nextInt())));
        define("setIntLE", (b, r) -> returned(b, b.setIntLE(index(b, r, 4), r.nextInt())));
        define("setLong", (b, r) -> returned(b, b.setLong(index(b, r, 8), r.nextLong())));
        define("setLongLE", (b, r) -> returned(b, b.setLongLE(index(b, r, 8), r.nextLong())));
        define("setFloat", (b, r) -> returned(b, b.setFloat(index(b, r, 4), r.nextFloat())));
        define("setZero", (b, r) -> {
            int length = length(b, r);
            return returned(b, b.setZero(index(b, r, length), length));
        });
        define("readByte", (b, r) -> b.readByte());
        define("readShort", (b, r) -> b.readShort());
        define("readUnsignedMediumLE", (b, r) -> b.readUnsignedMediumLE());
        define("readInt", (b, r) -> b.readInt());
        define("readLongLE", (b, r) -> b.readLongLE());
        define("writeByte", (b, r) -> returned(b, b.writeByte(r.nextInt())));
        define("writeShortLE", (b, r) -> returned(b, b.writeShortLE(r.nextInt())));
        define("writeMedium", (b, r) -> returned(b, b.writeMedium(r.nextInt())));
        define("writeInt", (b, r) -> returned(b, b.writeInt(r.nextInt())));
        define("writeLong", (b, r) -> returned(b, b.writeLong(r.nextLong())));
        define("writeDouble", (b, r) -> returned(b, b.writeDouble(r.nextDouble())));
        define("writeZero", (b, r) -> returned(b, b.writeZero(length(b, r))));
        define("writeUtf8", (b, r) -> ByteBufUtil.writeUtf8(b, "Grüße, 世界 " + r.nextInt()));
        define("writeCharSequence", (b, r) -> b.writeCharSequence("x" + r.nextInt(), StandardCharsets.US_ASCII));
        define("getBytes(byte[])", (b, r) -> {
            byte[] to = new byte[length(b, r)];
            b.getBytes(index(b, r, to.length), to);
            return to;
        });
        define("getBytes(byte[], part)", (b, r) -> {
            byte[] to = new byte[32];
            int length = r.nextInt(34);
            b.getBytes(index(b, r, length), to, r.nextInt(4), length);
            return to;
        });
        define("setBytes(byte[])", (b, r) -> {
            byte[] from = randomBytes(r, length(b, r));
            return returned(b, b.setBytes(index(b, r, from.length), from));
        });
        define("getBytes(ByteBuf)", (b, r) -> {
            int length = length(b, r);
            ByteBuf to = other(r, length);
            try {
                b.getBytes(index(b, r, length), to, 0, length);
                return ByteBufUtil.getBytes(to, 0, length);
            } finally {
                to.release();
            }
        });
        define("setBytes(ByteBuf)", (b, r) -> {
            int length = length(b, r);
            ByteBuf from = other(r, length);
            try {
                b.setBytes(index(b, r, length), from);
                return from.readerIndex() - from.writerIndex();
            } finally {
                from.release();
            }
        });
        define("setBytes(read-only)", (b, r) -> {
            int length = length(b, r);
            ByteBuf from = other(r, length).asReadOnly();
            try {
                return returned(b, b.setBytes(index(b, r, length), from, 0, length));
            } finally {
                from.release();
            }
        });
        define("writeBytes(ByteBuf)", (b, r) -> {
            ByteBuf from = other(r, length(b, r));
            try {
                b.writeBytes(from);
                return from.readableBytes();
            } finally {
                from.release();
            }
        });
        define("readBytes(ByteBuf)", (b, r) -> {
            ByteBuf to = other(r, r.nextInt(64)).clear();
            try {
                b.readBytes(to);
                return ByteBufUtil.getBytes(to);
            } finally {
                to.release();
            }
        });
        define("readBytes(int)", (b, r) -> {
            ByteBuf part = b.readBytes(r.nextInt(64));
            try {
                return ByteBufUtil.getBytes(part);
            } finally {
                part.release();
            }
        });
        define("getBytes(ByteBuffer)", (b, r) -> {
            int length = 1 + r.nextInt(64);
            ByteBuffer to = r.nextBoolean() ? ByteBuffer.allocate(length + 7) : ByteBuffer.allocateDirect(length + 7);
            to.position(3).limit(3 + length);
            b.getBytes(index(b, r, length), to);
            byte[] bytes = new byte[to.position()];
            to.flip().get(bytes);
            return bytes;
        });
        define("getBytes(read-only ByteBuffer)", (b, r) -> {
            b.getBytes(index(b, r, 4), ByteBuffer.allocate(4).asReadOnlyBuffer());
            return 0;
        });
        define("setBytes(ByteBuffer)", (b, r) -> {
            byte[] bytes = randomBytes(r, length(b, r));
            ByteBuffer from = r.nextBoolean()
                    ? ByteBuffer.wrap(bytes).asReadOnlyBuffer()
                    : ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
            b.setBytes(index(b, r, bytes.length), from);
            return from.remaining();
        });
        define("getBytes(OutputStream)", (b, r) -> {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            int length = length(b, r);
            b.getBytes(index(b, r, length), out, length);
            return out.toByteArray();
        });
        define("writeBytes(InputStream)", (b, r) -> {
            ByteArrayInputStream in = new ByteArrayInputStream(randomBytes(r, r.nextInt(64)));
            return b.writeBytes(in, 1 + r.nextInt(64));
        });
        define("getBytes(GatheringByteChannel)", (b, r) -> {
            try (FileChannel file = open("gather")) {
                int length = length(b, r);
                int written = b.getBytes(index(b, r, length), file, length);
                return written + " " + file.position();
            }
        });
        define("getBytes(FileChannel)", (b, r) -> {
            Path path = directory.resolve("out");
            try (FileChannel file = open("out")) {
                int length = 1 + r.nextInt(100);
                b.getBytes(index(b, r, length), file, 3, length);
            }
            return java.nio.file.Files.readAllBytes(path);
        });
        define("setBytes(FileChannel)", (b, r) -> {
            try (FileChannel file = open("in")) {
                file.write(ByteBuffer.wrap(randomBytes(r, 50)));
                int length = 1 + r.nextInt(100);
                return b.setBytes(index(b, r, length), file, 5, length);
            }
        });
        define("setBytes(ScatteringByteChannel)", (b, r) -> {
            try (FileChannel file = open("scatter")) {
                file.write(ByteBuffer.wrap(randomBytes(r, 50)));
                file.position(9);
                return b.setBytes(index(b, r, 30), file, 30);
            }
        });
        define("setBytes(closed channel)", (b, r) -> {
            FileChannel file = open("closed");
            file.close();
            return b.setBytes(0, file, 1);
        });
        define("skipBytes", (b, r) -> returned(b, b.skipBytes(r.nextInt(16))));
        define("readerIndex", (b, r) -> returned(b, b.readerIndex(r.nextInt(b.writerIndex() + 2))));
        define("writerIndex", (b, r) -> returned(b, b.writerIndex(r.nextInt(b.capacity() + 2))));
        define("clear", (b, r) -> r.nextInt(8) == 0 ? returned(b, b.clear()) : 0);
        define("mark and reset", (b, r) -> {
            b.markReaderIndex().markWriterIndex();
            b.skipBytes(b.readableBytes() / 2);
            return returned(b, b.resetReaderIndex().resetWriterIndex());
        });
        define("discardReadBytes", (b, r) -> returned(b, b.discardReadBytes()));
        define("discardSomeReadBytes", (b, r) -> returned(b, b.discardSomeReadBytes()));
        define("capacity", (b, r) -> returned(b, b.capacity(r.nextInt(MAX_CAPACITY + 20))));
        define("ensureWritable", (b, r) -> returned(b, b.ensureWritable(r.nextInt(200))));
        define("ensureWritable by force", (b, r) -> b.ensureWritable(r.nextInt(MAX_CAPACITY), r.nextBoolean()) % 2);
        define("slice", (b, r) -> {
            int length = length(b, r);
            ByteBuf slice = b.slice(index(b, r, length), length);
            if (length > 8) {
                slice.setLong(length - 8, r.nextLong());
                slice.setIntLE(0, r.nextInt());
            }
            return ByteBufUtil.getBytes(slice);
        });
        define("retainedSlice", (b, r) -> {
            ByteBuf slice = b.retainedSlice(0, Math.min(10, b.capacity()));
            try {
                return b.refCnt() + ByteBufUtil.hexDump(slice);
            } finally {
                slice.release();
            }
        });
        define("readRetainedSlice", (b, r) -> {
            ByteBuf slice = b.readRetainedSlice(r.nextInt(20));
            try {
                return ByteBufUtil.hexDump(slice);
            } finally {
                slice.release();
            }
        });
        define("duplicate", (b, r) -> ByteBufUtil.hexDump(b.duplicate().skipBytes(1)));
        define("asReadOnly", (b, r) -> {
            ByteBuf readOnly = b.asReadOnly();
            return readOnly.isReadOnly() + ByteBufUtil.hexDump(readOnly) + readOnly.isWritable();
        });
        define("write read-only", (b, r) -> b.asReadOnly().setInt(0, 1));
        define("copy", (b, r) -> {
            int length = length(b, r);
            ByteBuf copy = b.copy(index(b, r, length), length);
            try {
                return ByteBufUtil.getBytes(copy);
            } finally {
                copy.release();
            }
        });
        define("order", (b, r) -> {
            ByteBuf swapped = b.order(ByteOrder.LITTLE_ENDIAN);
            swapped.setInt(index(b, r, 4), r.nextInt());
            int at = index(b, r, 8);
            swapped.writeShort(r.nextInt());
            return at < 0 || at > b.writerIndex() - 8 ? 0 : swapped.getLong(at);
        });
        define("indexOf", (b, r) -> b.indexOf(b.readerIndex(), b.writerIndex(), (byte) r.nextInt(4)));
        define("bytesBefore", (b, r) -> b.bytesBefore((byte) r.nextInt()));
        define("forEachByte", (b, r) -> b.forEachByte(value -> value != 0));
        define("forEachByteDesc", (b, r) -> {
            byte stop = (byte) r.nextInt(3);
            return b.forEachByteDesc(value -> value != stop);
        });
        define("getCharSequence", (b, r) -> {
            int length = r.nextInt(40);
            return b.getCharSequence(index(b, r, length), length, StandardCharsets.ISO_8859_1)
                    .toString();
        });
        define("toString", (b, r) -> b.toString(StandardCharsets.UTF_8));
        define("hashCode", (b, r) -> b.hashCode());
        define("equals", (b, r) -> {
            ByteBuf same = Unpooled.copiedBuffer(b);
            boolean before = b.equals(same) && same.equals(b) && b.compareTo(same) == 0;
            same.writeByte(1);
            return before && !b.equals(same) && b.compareTo(same) < 0;
        });
        define("nioBuffer", (b, r) -> {
            int length = length(b, r);
            ByteBuffer view = b.nioBuffer(index(b, r, length), length);
            if (length > 4) {
                view.putInt(1, r.nextInt());
            }
            byte[] bytes = new byte[view.remaining()];
            view.get(bytes);
            return bytes;
        });
        define("nioBuffers", (b, r) -> {
            ByteBuffer[] views = b.nioBuffers();
            return views.length + " " + views[0].remaining() + " " + views[0].order() + b.nioBufferCount();
        });
        define("internalNioBuffer", (b, r) -> {
            int length = length(b, r);
            ByteBuffer view = b.internalNioBuffer(index(b, r, length), length);
            byte[] bytes = new byte[view.remaining()];
            view.get(bytes);
            return bytes;
        });
        define("is", (b, r) -> b.isContiguous() + " " + b.isReadable() + b.isWritable() + b.isReadable(3) + b.order());
        define("writeBytes(itself)", (b, r) -> {
            int length = r.nextInt(20);
            return returned(b, b.setBytes(index(b, r, length), b, index(b, r, length), length));
        });
    }

    private FileChannel open(String name) throws java.io.IOException {
        return FileChannel.open(
                directory.resolve(name),
                StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE);
    }

    /** Fluent methods return the buffer itself. */
    private static boolean returned(ByteBuf buffer, ByteBuf result) {
        return buffer == result;
    }

    @Test
    void refusesEverythingOnceReleased() {
        defineOperations();
        List<String> untouched = List.of(
                // These only look at indices or make views, which Netty allows on a released buffer.
                "readerIndex",
                "writerIndex",
                "clear",
                "is",
                "asReadOnly",
                "write read-only",
                "mark and reset",
                "indexOf",
                "bytesBefore",
                "setBytes(closed channel)");
        for (Map.Entry<String, Operation> operation : operations.entrySet()) {
            if (untouched.contains(operation.getKey())) {
                continue;
            }
            RegisteredByteBuf buffer = pool.allocate(200, 200);
            buffer.writeZero(150);
            buffer.release();
            try {
                operation.getValue().apply(buffer, new Random(1));
                fail("%s worked on a released buffer", operation.getKey());
            } catch (IllegalReferenceCountException expected) {
                assertThat(expected).isNotNull();
            } catch (Exception other) {
                fail(operation.getKey() + " failed otherwise on a released buffer", other);
            }
        }
    }

    @Test
    void readsFromAndWritesToPlainChannels() throws Exception {
        byte[] bytes = randomBytes(new Random(7), 10_000);
        RegisteredByteBuf buffer = pool.allocate(10_000);
        try (ReadableByteChannel in = Channels.newChannel(new ByteArrayInputStream(bytes))) {
            while (in.read(buffer.nioBuffer(buffer.writerIndex(), buffer.writableBytes())) > 0) {
                buffer.writerIndex(10_000);
            }
        }
        assertThat(Arrays.equals(ByteBufUtil.getBytes(buffer), bytes)).isTrue();
        buffer.release();
    }

    @Test
    void doesNotWriteIntoReadOnlyBuffers() {
        RegisteredByteBuf buffer = pool.allocate(8);
        ByteBuf target = Unpooled.directBuffer(8, 8).writeLong(0).asReadOnly();
        assertThatThrownBy(() -> buffer.getBytes(0, target, 0, 8)).isInstanceOf(ReadOnlyBufferException.class);
        target.release();
        buffer.release();
    }

    @Test
    void viewsFailSafelyOnceTheMemoryIsFreed() {
        RegisteredByteBuf buffer = pool.allocate(100);
        ByteBuffer stray = buffer.nioBuffer(0, 100);
        buffer.release();
        pool.close();
        assertThatThrownBy(() -> stray.get(0)).isInstanceOf(IllegalStateException.class);
    }

    /** A buffer that goes out on several loops is read by their threads at the same time. */
    @Test
    void threadsReadItWhileAnotherShowsAPart() throws InterruptedException {
        ByteBuf buffer = pool.allocator().directBuffer(64).writeZero(64);
        AtomicBoolean over = new AtomicBoolean();
        Thread other = new Thread(() -> {
            while (!over.get()) {
                buffer.internalNioBuffer(0, 8);
            }
        });
        other.start();
        ByteBuffer target = ByteBuffer.allocateDirect(64);
        try {
            for (int i = 0; i < 100_000; i++) {
                buffer.getBytes(0, target.clear());
            }
        } finally {
            over.set(true);
            other.join();
        }
        buffer.release();
    }
}
