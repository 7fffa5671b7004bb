package org.verbena.transport.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.IllegalReferenceCountException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.verbena.transport.BufferPoolMetrics;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.spi.ScatterGatherList;

/** What a pool promises to those who take buffers from it. */
class RegisteredBufferPoolTest {
    private static final int CHUNK_BYTES = 256 << 10;
    private static final BufferPoolOptions OPTIONS = BufferPoolOptions.DEFAULTS
            .withChunkBytes(CHUNK_BYTES)
            .withMaxRegisteredBytes(8L * CHUNK_BYTES)
            .withOnExhaustion(BufferPoolOptions.Exhaustion.FAIL);

    private final CountingMemoryDomain domain = new CountingMemoryDomain();
    private long nowNanos;
    private RegisteredBufferPool pool = new RegisteredBufferPool(domain, OPTIONS, () -> nowNanos);

    private void restart(BufferPoolOptions options) {
        pool.close();
        pool = new RegisteredBufferPool(domain, options, () -> nowNanos);
    }

    @AfterEach
    void leavesNothingRegistered() {
        pool.close();
        assertThat(domain.registeredBytes()).isZero();
        assertThat(domain.liveRegions()).isZero();
        assertThat(pool.metrics().registeredBytes()).isZero();
    }

    @Test
    void registersNothingBeforeTheFirstBuffer() {
        assertThat(domain.registrations()).isZero();
        pool.allocate(1).release();
        assertThat(domain.registrations()).isEqualTo(1);
        assertThat(domain.registeredBytes()).isEqualTo(CHUNK_BYTES);
    }

    @Test
    void doesNotTouchTheMemoryOfAFreshChunk() throws IOException {
        assumeThat(MappedMemory.isAvailable()).as("memory can be mapped").isTrue();
        int bytes = 256 << 20;
        restart(OPTIONS.withMaxRegisteredBytes(bytes));
        long residentBefore = residentBytes();
        RegisteredByteBuf buffer = pool.allocate(bytes, bytes);
        assertThat(residentBytes() - residentBefore).isLessThan(bytes / 4);
        for (int at = 0; at < bytes; at += bytes / 16 - 1) {
            assertThat(buffer.getByte(at)).isZero();
        }
        buffer.release();
    }

    private static long residentBytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) << 10;
            }
        }
        throw new AssertionError("/proc/self/status has no VmRSS");
    }

    @Test
    void hasTheRegionAndOffsetOfItsMemory() {
        RegisteredByteBuf buffer = pool.allocate(1000);
        buffer.writeLong(0x1122334455667788L);
        RegisteredMemory region = buffer.region();
        assertThat(region.address() + buffer.regionOffsetBytes()).isEqualTo(buffer.memoryAddress());
        assertThat(region.segment().get(java.lang.foreign.ValueLayout.JAVA_BYTE, buffer.regionOffsetBytes()))
                .isEqualTo((byte) 0x11);
        assertThat(buffer.segment().byteSize()).isEqualTo(1000);
        assertThat(buffer.alloc()).isSameAs(pool.allocator());
        buffer.release();
        assertThatThrownBy(buffer::region).isInstanceOf(IllegalReferenceCountException.class);
    }

    @Test
    void reusesBlocksAndTheirBuffers() {
        RegisteredByteBuf first = pool.allocate(5000);
        first.writeInt(7).markReaderIndex().readInt();
        first.release();
        RegisteredByteBuf second = pool.allocate(5100, 5100);
        assertThat(second).isSameAs(first);
        assertThat(second.refCnt()).isEqualTo(1);
        assertThat(second.readableBytes()).isZero();
        assertThat(second.capacity()).isEqualTo(5100);
        assertThat(second.maxCapacity()).isEqualTo(5100);
        assertThat(second.resetReaderIndex().readerIndex()).isZero();
        second.release();
        assertThat(domain.registrations()).isEqualTo(1);
    }

    @Test
    void neverOverlapsAndKeepsContents() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        restart(OPTIONS.withMaxRegisteredBytes(64L * CHUNK_BYTES));
        Map<RegisteredByteBuf, Long> contents = new IdentityHashMap<>();
        List<RegisteredByteBuf> out = new ArrayList<>();
        long usedBytes = 0;
        for (int step = 0; step < 20_000; step++) {
            if (out.isEmpty() || random.nextInt(100) < (step / 2_000 % 2 == 0 ? 60 : 40)) {
                int bytes = random.nextInt(20) == 0
                        ? random.nextInt(2 * CHUNK_BYTES)
                        : (int) Math.pow(2, random.nextDouble() * 14);
                RegisteredByteBuf buffer = pool.tryAllocate(bytes, Integer.MAX_VALUE);
                if (buffer == null) {
                    continue;
                }
                assertThat(buffer.memoryAddress() % 64).as("seed %d", seed).isZero();
                long mark = random.nextLong();
                fill(buffer, mark);
                contents.put(buffer, mark);
                out.add(buffer);
                usedBytes += buffer.blockBytes();
            } else {
                RegisteredByteBuf buffer = out.remove(random.nextInt(out.size()));
                check(buffer, contents.remove(buffer), seed);
                usedBytes -= buffer.blockBytes();
                buffer.release();
            }
            if (step % 1_000 == 0) {
                assertNoOverlap(out, seed);
                BufferPoolMetrics now = pool.metrics();
                assertThat(now.usedBytes()).as("seed %d", seed).isEqualTo(usedBytes);
                assertThat(now.registeredBytes()).isEqualTo(domain.registeredBytes());
                assertThat(now.usedBytes() + now.cachedBytes() + now.freeBytes())
                        .isEqualTo(now.registeredBytes());
            }
        }
        for (RegisteredByteBuf buffer : out) {
            check(buffer, contents.get(buffer), seed);
            buffer.release();
        }
        assertThat(pool.metrics().usedBytes()).as("seed %d", seed).isZero();
        assertThat(pool.metrics().allocations()).isEqualTo(pool.metrics().releases());
    }

    private static void fill(ByteBuf buffer, long mark) {
        Random bytes = new Random(mark);
        while (buffer.isWritable(Integer.BYTES) && buffer.writableBytes() <= buffer.capacity()) {
            if (buffer.writerIndex() + Integer.BYTES > buffer.capacity()) {
                break;
            }
            buffer.writeInt(bytes.nextInt());
        }
    }

    private static void check(ByteBuf buffer, long mark, long seed) {
        Random bytes = new Random(mark);
        for (int i = 0; i + Integer.BYTES <= buffer.capacity(); i += Integer.BYTES) {
            int expected = bytes.nextInt();
            if (buffer.getInt(i) != expected) {
                assertThat(buffer.getInt(i)).as("seed %d, index %d", seed, i).isEqualTo(expected);
            }
        }
    }

    private static void assertNoOverlap(List<RegisteredByteBuf> out, long seed) {
        TreeMap<Long, Long> ends = new TreeMap<>();
        for (RegisteredByteBuf buffer : out) {
            assertThat(ends.put(buffer.memoryAddress(), buffer.memoryAddress() + buffer.blockBytes()))
                    .as("seed %d: two buffers at one address", seed)
                    .isNull();
        }
        long before = 0;
        for (Map.Entry<Long, Long> sge : ends.entrySet()) {
            assertThat(sge.getKey()).as("seed %d", seed).isGreaterThanOrEqualTo(before);
            before = sge.getValue();
        }
    }

    @Test
    void gathersViewsAndComposites() {
        RegisteredByteBuf a = pool.allocate(100);
        RegisteredByteBuf b = pool.allocate(100);
        a.writeZero(100);
        b.writeZero(100);
        ScatterGatherList sges = new ScatterGatherList(8);

        assertThat(RegisteredByteBuf.gather(a.skipBytes(3), domain, sges)).isTrue();
        assertSge(sges, 0, a.memoryAddress() + 3, 97);

        sges.clear();
        assertThat(RegisteredByteBuf.gather(
                        a.slice(10, 50).slice(5, 20).asReadOnly().duplicate(), domain, sges))
                .isTrue();
        assertSge(sges, 0, a.memoryAddress() + 15, 20);

        sges.clear();
        CompositeByteBuf both = Unpooled.compositeBuffer()
                .addComponent(true, a.retainedSlice(10, 30))
                .addComponent(true, Unpooled.compositeBuffer().addComponent(true, b.retainedSlice(0, 40)));
        assertThat(RegisteredByteBuf.gather(both.skipBytes(5), domain, sges)).isTrue();
        assertThat(sges.count()).isEqualTo(2);
        assertSge(sges, 0, a.memoryAddress() + 15, 25);
        assertSge(sges, 1, b.memoryAddress(), 40);

        sges.clear();
        assertThat(RegisteredByteBuf.gather(both.slice(20, 20), domain, sges)).isTrue();
        assertThat(sges.count()).isEqualTo(2);
        assertSge(sges, 0, a.memoryAddress() + 30, 10);
        assertSge(sges, 1, b.memoryAddress(), 10);
        assertThat(RegisteredByteBuf.countSges(both, 0, 70, domain)).isEqualTo(2);

        both.addComponent(true, Unpooled.buffer(4).writeInt(1));
        sges.clear();
        assertThat(RegisteredByteBuf.gather(both, domain, sges)).isFalse();
        ByteBuf foreign = Unpooled.directBuffer(4).writeInt(1);
        assertThat(RegisteredByteBuf.gather(foreign, domain, sges)).isFalse();
        foreign.release();
        assertThat(RegisteredByteBuf.gather(a, new CountingMemoryDomain(), sges))
                .isFalse();
        assertThat(sges.count()).isZero();
        both.release();
        a.release();
        b.release();
    }

    private static void assertSge(ScatterGatherList sges, int index, long address, int lengthBytes) {
        assertThat(sges.address(index)).isEqualTo(address);
        assertThat(sges.length(index)).isEqualTo(lengthBytes);
    }

    @Test
    void refusesBeyondTheLimitAndSaysWhich() {
        List<RegisteredByteBuf> out = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            out.add(pool.allocate(CHUNK_BYTES));
        }
        assertThat(domain.registeredBytes()).isEqualTo(OPTIONS.maxRegisteredBytes());
        assertThat(pool.tryAllocate(1, 1)).isNull();
        assertThatThrownBy(() -> pool.allocate(1))
                .isInstanceOf(RegisteredMemoryExhaustedException.class)
                .hasMessageContaining("BufferPoolOptions.maxRegisteredBytes")
                .hasMessageContaining(Long.toString(OPTIONS.maxRegisteredBytes()));
        assertThat(pool.metrics().refusals()).isEqualTo(2);
        out.remove(0).release();
        pool.allocate(1).release();
        out.forEach(ByteBuf::release);
        assertThat(domain.registeredBytes()).isLessThanOrEqualTo(OPTIONS.maxRegisteredBytes());
    }

    @Test
    void givesIdleChunksBack() {
        RegisteredByteBuf buffer = pool.allocate(CHUNK_BYTES);
        RegisteredByteBuf large = pool.allocate(3 * CHUNK_BYTES);
        buffer.release();
        large.release();
        pool.trim();
        assertThat(domain.liveRegions()).isEqualTo(2);
        nowNanos += OPTIONS.idleNanos() - 1;
        pool.trim();
        assertThat(domain.liveRegions()).isEqualTo(2);
        nowNanos += 1;
        pool.trim();
        assertThat(domain.liveRegions()).isZero();
        assertThat(pool.metrics().chunksReleased()).isEqualTo(2);
    }

    @Test
    void keepsALargeBufferForTheNextOfItsSize() {
        RegisteredByteBuf large = pool.allocate(CHUNK_BYTES + 1);
        assertThat(large.blockBytes()).isEqualTo(CHUNK_BYTES + CHUNK_BYTES / 4);
        large.release();
        RegisteredByteBuf next = pool.allocate(CHUNK_BYTES + CHUNK_BYTES / 4);
        assertThat(next).isSameAs(large);
        assertThat(domain.registrations()).isEqualTo(1);
        next.release();
        assertThat(pool.metrics().usedBytes()).isZero();
    }

    @Test
    void dropsNoMoreIdleChunksThanItMust() {
        List<RegisteredByteBuf> large = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            large.add(pool.allocate(2 * CHUNK_BYTES));
        }
        large.forEach(ByteBuf::release);
        assertThat(domain.liveRegions()).isEqualTo(4);
        RegisteredByteBuf small = pool.allocate(64);
        assertThat(domain.liveRegions()).isEqualTo(4);
        assertThat(pool.metrics().chunksReleased()).isEqualTo(1);
        small.release();
    }

    @Test
    void takesALargeBufferExactlyWhereItsClassWouldExceedTheLimit() {
        RegisteredByteBuf large = pool.allocate((int) OPTIONS.maxRegisteredBytes() - 5);
        assertThat(domain.registeredBytes()).isEqualTo(OPTIONS.maxRegisteredBytes());
        large.release();
        assertThat(pool.tryAllocate((int) OPTIONS.maxRegisteredBytes() + 1, Integer.MAX_VALUE))
                .isNull();
        RegisteredByteBuf all = pool.allocate((int) OPTIONS.maxRegisteredBytes());
        assertThat(domain.registeredBytes()).isEqualTo(OPTIONS.maxRegisteredBytes());
        all.release();
    }

    @Test
    void givesFreeMemoryOfOneSizeToAnother() {
        for (int bytes :
                new int[] {8 * CHUNK_BYTES, CHUNK_BYTES, 3_000, 3 * CHUNK_BYTES, 40_000, 64, 8 * CHUNK_BYTES}) {
            List<RegisteredByteBuf> out = new ArrayList<>();
            long blocks = 0;
            for (RegisteredByteBuf buffer; (buffer = pool.tryAllocate(bytes, bytes)) != null; ) {
                out.add(buffer);
                blocks += buffer.blockBytes();
            }
            assertThat(blocks).as("of %d bytes each", bytes).isGreaterThan(OPTIONS.maxRegisteredBytes() * 7 / 10);
            assertThat(domain.registeredBytes()).isLessThanOrEqualTo(OPTIONS.maxRegisteredBytes());
            out.forEach(ByteBuf::release);
        }
    }

    @Test
    void freesMemoryOnlyWhenWorkInFlightIsDone() {
        RegisteredByteBuf buffer = pool.allocate(64);
        RegisteredMemory region = buffer.region();
        region.retain();
        buffer.release();
        pool.close();
        assertThat(region.segment().scope().isAlive()).isTrue();
        assertThat(domain.liveRegions()).isEqualTo(1);
        region.release();
        assertThat(region.segment().scope().isAlive()).isFalse();
    }

    @Test
    void freesMemoryOnlyAfterTheLastBufferIsReleased() {
        RegisteredByteBuf buffer = pool.allocate(64);
        pool.close();
        buffer.writeLong(1);
        assertThatThrownBy(() -> pool.allocate(1))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        assertThat(domain.liveRegions()).isEqualTo(1);
        buffer.release();
        assertThat(domain.liveRegions()).isZero();
    }

    @Test
    void growsIntoALargerBlock() {
        RegisteredByteBuf buffer = pool.allocate(64);
        for (int i = 0; i < 100_000; i++) {
            buffer.writeInt(i);
        }
        for (int i = 0; i < 100_000; i++) {
            assertThat(buffer.readInt()).isEqualTo(i);
        }
        assertThat(pool.metrics().grows()).isPositive();
        ScatterGatherList sges = new ScatterGatherList(1);
        assertThat(RegisteredByteBuf.gather(buffer.readerIndex(0), domain, sges))
                .isTrue();
        assertThat(sges.totalBytes()).isEqualTo(400_000);
        buffer.release();
        assertThat(pool.metrics().usedBytes()).isZero();
    }
}
