package org.verbena.api.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.DefaultEventLoop;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.buffer.CountingMemoryDomain;
import org.verbena.transport.spi.Patience;

@Timeout(120)
class ChannelBuffersTest {
    /** A domain whose device can be lost. */
    private static final class LosableDomain implements MemoryDomain {
        private final CountingMemoryDomain counting = new CountingMemoryDomain();
        private final List<Runnable> listeners = new ArrayList<>();

        @Override
        public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
            return counting.register(segment, access);
        }

        @Override
        public long registeredBytes() {
            return counting.registeredBytes();
        }

        @Override
        public void whenLost(Runnable listener) {
            listeners.add(listener);
        }
    }

    @Test
    void theMemoryOfALostDeviceIsGivenBackAsItIsReleased() {
        LosableDomain domain = new LosableDomain();
        DefaultEventLoop loop = new DefaultEventLoop();
        ChannelBuffers buffers = ChannelBuffers.of(domain);
        assertThat(ChannelBuffers.of(domain)).isSameAs(buffers);
        buffers.attach(loop);
        ByteBufAllocator allocator = buffers.allocator();
        Patience.await(
                "a buffer in the loop's cache",
                loop.submit(() -> allocator.buffer(100).release()));
        ByteBuf kept = allocator.buffer(100);
        assertThat(domain.registeredBytes()).isPositive();

        domain.listeners.forEach(Runnable::run);
        Patience.await("the loop's cache is given back", loop.submit(() -> {}));
        assertThat(domain.counting.liveRegions()).isOne();
        ByteBuf late = allocator.buffer(100);
        late.writeLong(7);
        assertThat(late.readLong()).as("plain memory").isEqualTo(7);
        late.release();
        kept.release();
        assertThat(domain.registeredBytes()).isZero();
        assertThat(ChannelBuffers.of(domain)).as("of a device that came back").isNotSameAs(buffers);
        loop.shutdownGracefully();
    }
}
