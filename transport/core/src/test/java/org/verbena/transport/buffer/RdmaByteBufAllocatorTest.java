package org.verbena.transport.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.util.ResourceLeakDetector;
import java.util.EnumSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.ScatterGatherList;

/** The pool as Netty sees it. */
@Timeout(240)
class RdmaByteBufAllocatorTest {
    private static final int CHUNK_BYTES = 256 << 10;

    private final CountingMemoryDomain domain = new CountingMemoryDomain();
    private RegisteredBufferPool pool = new RegisteredBufferPool(
            domain,
            BufferPoolOptions.DEFAULTS
                    .withChunkBytes(CHUNK_BYTES)
                    .withMaxRegisteredBytes(CHUNK_BYTES)
                    .withLargestPooledBytes(CHUNK_BYTES));
    private RdmaByteBufAllocator allocator = pool.allocator();

    @AfterEach
    void leavesNothing() {
        assertThat(pool.metrics().usedBytes()).isZero();
        assertThat(pool.metrics().plainBytes()).isZero();
        assertThat(allocator.metric().usedHeapMemory()).isZero();
        pool.close();
        assertThat(domain.liveRegions()).isZero();
    }

    private boolean isRegistered(ByteBuf buffer) {
        return RegisteredByteBuf.countSges(buffer, 0, 1, domain) == 1;
    }

    @Test
    void givesRegisteredBuffersUnlessHeapIsAskedFor() {
        ByteBuf[] registered = {
            allocator.buffer(),
            allocator.buffer(10),
            allocator.buffer(10, 20),
            allocator.ioBuffer(),
            allocator.ioBuffer(10),
            allocator.directBuffer(),
            allocator.directBuffer(10, 20)
        };
        for (ByteBuf buffer : registered) {
            assertThat(isRegistered(buffer)).isTrue();
            assertThat(buffer.alloc()).isSameAs(allocator);
            assertThat(buffer.writeInt(1).copy()).satisfies(copy -> {
                assertThat(isRegistered(copy)).isTrue();
                copy.release();
            });
            buffer.release();
        }
        ByteBuf heap = allocator.heapBuffer(100);
        assertThat(heap.hasArray()).isTrue();
        assertThat(isRegistered(heap)).isFalse();
        assertThat(heap.alloc()).isSameAs(allocator);
        assertThat(allocator.metric().usedHeapMemory()).isEqualTo(100);
        heap.release();
        assertThat(allocator.isDirectBufferPooled()).isTrue();
        assertThat(allocator.metric().usedDirectMemory()).isEqualTo(CHUNK_BYTES);
    }

    @Test
    void givesCompositesThatGather() {
        CompositeByteBuf both = allocator.compositeBuffer();
        both.addComponent(true, allocator.buffer(8).writeLong(1)).writeInt(2);
        ScatterGatherList sges = new ScatterGatherList(4);
        assertThat(RegisteredByteBuf.gather(both, domain, sges)).isTrue();
        assertThat(sges.totalBytes()).isEqualTo(12);
        both.release();
    }

    @Test
    void givesPlainMemoryAtTheLimitAndSaysSoOnce() {
        Logger logger = (Logger) LoggerFactory.getLogger(RdmaByteBufAllocator.class);
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        logger.addAppender(log);
        ByteBuf all = allocator.buffer(CHUNK_BYTES);
        ByteBuf one = allocator.buffer(10, 1_000);
        ByteBuf two = allocator.buffer(10, 1_000);
        logger.detachAppender(log);
        assertThat(isRegistered(one)).isFalse();
        assertThat(one.isDirect()).isTrue();
        assertThat(one.alloc()).isSameAs(allocator);
        assertThat(pool.metrics().exhaustedBuffers()).isEqualTo(2);
        assertThat(pool.metrics().plainBytes()).isEqualTo(20);
        one.writeZero(500);
        assertThat(pool.metrics().plainBytes()).isEqualTo(10 + one.capacity());
        assertThat(log.list).hasSize(1);
        assertThat(log.list.get(0).getLevel()).isEqualTo(Level.WARN);
        assertThat(log.list.get(0).getFormattedMessage()).contains("BufferPoolOptions.maxRegisteredBytes");
        all.release();
        one.release();
        two.release();
        ByteBuf again = allocator.buffer(10);
        assertThat(isRegistered(again)).isTrue();
        again.release();
    }

    @Test
    void givesPlainMemoryAboveTheLargestPooledSize() {
        ByteBuf atTheBound = allocator.buffer(CHUNK_BYTES);
        ByteBuf onePast = allocator.buffer(CHUNK_BYTES + 1);
        assertThat(isRegistered(atTheBound)).isTrue();
        assertThat(isRegistered(onePast)).isFalse();
        assertThat(pool.metrics().oversizeBuffers()).isEqualTo(1);
        assertThat(pool.metrics().exhaustedBuffers()).isZero();
        atTheBound.release();
        onePast.release();
    }

    @Test
    void givesPlainMemoryWhereTheDeviceRefuses() {
        domain.refusal = new RegisteredMemoryExhaustedException("RLIMIT_MEMLOCK");
        ByteBuf buffer = allocator.buffer(10);
        assertThat(isRegistered(buffer)).isFalse();
        assertThat(pool.metrics().exhaustedBuffers()).isEqualTo(1);
        assertThat(pool.metrics().refusals()).isEqualTo(1);
        assertThat(pool.metrics().registeredBytes()).isZero();
        buffer.release();
    }

    @Test
    void failsIfTheOptionSaysSo() {
        pool.close();
        pool = new RegisteredBufferPool(domain, pool.options().withOnExhaustion(BufferPoolOptions.Exhaustion.FAIL));
        allocator = pool.allocator();
        ByteBuf all = allocator.buffer(CHUNK_BYTES);
        assertThatThrownBy(() -> allocator.buffer(1)).isInstanceOf(RegisteredMemoryExhaustedException.class);
        assertThatThrownBy(() -> all.capacity(CHUNK_BYTES + 1)).isInstanceOf(RegisteredMemoryExhaustedException.class);
        assertThat(all.capacity()).isEqualTo(CHUNK_BYTES);
        all.release();
    }

    @Test
    void reportsLeaks() {
        ResourceLeakDetector.Level before = ResourceLeakDetector.getLevel();
        Logger logger = (Logger) LoggerFactory.getLogger(ResourceLeakDetector.class);
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        logger.addAppender(log);
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
        CountingMemoryDomain leakyDomain = new CountingMemoryDomain();
        RegisteredBufferPool leaky = new RegisteredBufferPool(leakyDomain, BufferPoolOptions.DEFAULTS);
        try {
            lose(leaky);
            Patience.until("the leak is reported", () -> {
                System.gc();
                leaky.allocator().buffer(32).release();
                return log.list.stream()
                        .anyMatch(event -> event.getFormattedMessage().contains("LEAK"));
            });
            ByteBuf kept = leaky.allocator().buffer(32);
            ScatterGatherList sges = new ScatterGatherList(1);
            assertThat(RegisteredByteBuf.gather(kept.writeInt(1), leakyDomain, sges))
                    .as("leak-tracking wrapper")
                    .isTrue();
            kept.release();
        } finally {
            ResourceLeakDetector.setLevel(before);
            logger.detachAppender(log);
        }
    }

    private static void lose(RegisteredBufferPool from) {
        for (int i = 0; i < 10; i++) {
            assertThat(from.allocator().buffer(64).writeInt(i).readableBytes()).isEqualTo(4);
        }
    }

    @Test
    void registersForOneOperation() {
        ByteBuf foreign = io.netty.buffer.Unpooled.directBuffer(1_000);
        RegisteredMemory region =
                OperationRegistration.register(foreign, 100, 200, domain, EnumSet.of(Access.REMOTE_READ));
        assertThat(region).isNotNull();
        assertThat(region.address()).isEqualTo(foreign.memoryAddress() + 100);
        assertThat(region.lengthBytes()).isEqualTo(200);
        assertThat(region.access()).containsExactly(Access.REMOTE_READ);
        foreign.release();
        assertThat(foreign.refCnt()).isEqualTo(1);
        region.retain();
        region.close();
        assertThat(foreign.refCnt()).as("work in flight").isEqualTo(1);
        region.release();
        assertThat(foreign.refCnt()).isZero();

        ByteBuf pooled = allocator.buffer(1_000);
        RegisteredMemory own = OperationRegistration.register(
                pooled, 0, 1_000, domain, EnumSet.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE));
        assertThat(own).isNotNull();
        assertThat(own.lengthBytes()).isEqualTo(1_000);
        pooled.release();
        assertThat(pool.metrics().usedBytes()).isPositive();
        own.close();

        ByteBuf heap = allocator.heapBuffer(10);
        assertThat(OperationRegistration.register(heap, 0, 10, domain, EnumSet.of(Access.REMOTE_READ)))
                .isNull();
        heap.release();
        ByteBuf refused = allocator.buffer(10);
        domain.refusal = new RegisteredMemoryExhaustedException("no");
        assertThatThrownBy(() -> OperationRegistration.register(refused, 0, 10, domain, EnumSet.of(Access.REMOTE_READ)))
                .isInstanceOf(RegisteredMemoryExhaustedException.class);
        assertThat(refused.refCnt()).isEqualTo(1);
        refused.release();
        assertThatThrownBy(() -> OperationRegistration.register(refused, 0, 11, domain, EnumSet.noneOf(Access.class)))
                .isInstanceOf(IndexOutOfBoundsException.class);
    }
}
