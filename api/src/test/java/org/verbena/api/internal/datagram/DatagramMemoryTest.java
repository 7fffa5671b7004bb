package org.verbena.api.internal.datagram;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelPromise;
import io.netty.channel.DefaultEventLoop;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.socket.DatagramPacket;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.CountingMemoryDomain;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.DatagramCapabilities;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.ScatterGatherList;

/** The datagrams of a channel whose device registers no memory for a while. */
@Timeout(120)
class DatagramMemoryTest {
    private static final InetSocketAddress SERVER = new InetSocketAddress("10.0.0.1", 7471);
    private static final int RECEIVES = 4;

    private final CountingMemoryDomain domain = new CountingMemoryDomain();
    private final RegisteredBufferPool pool = new RegisteredBufferPool(
            domain, BufferPoolOptions.DEFAULTS.withAccess(Set.of(MemoryDomain.Access.LOCAL_WRITE)));
    private final MessageBuffers buffers = new MessageBuffers(pool, pool);
    private final DatagramCounters counters = new DatagramCounters();
    private final Device device = new Device();

    /** Takes whatever it is given, and answers look-ups at once. */
    private final class Device extends DatagramDestinationsTest.LookUps {
        final AtomicInteger receives = new AtomicInteger();
        final AtomicInteger sends = new AtomicInteger();

        @Override
        public DatagramCapabilities capabilities() {
            return new DatagramCapabilities(1024, 40 + 1024, 40, 4, RECEIVES, 2, 0);
        }

        @Override
        public MemoryDomain memoryDomain() {
            return domain;
        }

        @Override
        public boolean postReceive(long workId, ScatterGatherList list) {
            receives.incrementAndGet();
            return true;
        }

        @Override
        public boolean post(
                long workId,
                ScatterGatherList list,
                DatagramDestination destination,
                boolean hasImmediateData,
                int immediateData) {
            sends.incrementAndGet();
            return true;
        }

        @Override
        public int freeSendSlots() {
            return 4;
        }
    }

    private void refuse(boolean now) {
        domain.refusal = now ? new RegisteredMemoryExhaustedException("none for a test") : null;
    }

    private static final class NoPackets implements DatagramInbound.Host {
        @Override
        public boolean accepts0(DatagramPeer sender, long destinationHigh, long destinationLow) {
            throw new AssertionError("nothing arrives");
        }

        @Override
        public InetSocketAddress addressOf0(DatagramPeer sender) {
            throw new AssertionError("nothing arrives");
        }

        @Override
        public DatagramPacket packet0(
                ByteBuf content, InetSocketAddress sender, boolean hasImmediateData, int immediateData) {
            throw new AssertionError("nothing arrives");
        }
    }

    @Test
    void receivesWaitUntilThereIsMemory() {
        EventLoop loop = new DefaultEventLoop();
        refuse(true);
        DatagramInbound inbound = new DatagramInbound(new NoPackets(), loop, device, buffers, counters);
        Patience.await("the first attempt", loop.submit(inbound::replenish0));
        Patience.until("it has tried again", () -> counters.get(DatagramCounters.STARVED) > 1);
        assertThat(device.receives).hasValue(0);
        refuse(false);
        Patience.until("all are posted", () -> device.receives.get() == RECEIVES);
        Patience.await("its end", loop.submit(inbound::close0));
        Patience.await("the loop's end", loop.shutdownGracefully(0, 1, TimeUnit.SECONDS));
        assertThat(pool.metrics().usedBytes()).isZero();
    }

    private DatagramDestinations.Entry recipient() {
        DatagramDestinations destinations = new DatagramDestinations(
                new DatagramDestinations.Host() {
                    @Override
                    public DatagramDestinationsTest.LookUps endpoint0() {
                        return device;
                    }

                    @Override
                    public @Nullable DatagramPeer named0(InetSocketAddress address) {
                        return null;
                    }

                    @Override
                    public int timeoutMillis0() {
                        return 1_000;
                    }

                    @Override
                    public void writeReady0(Outgoing outgoing, ChannelPromise promise, boolean isFlushed) {
                        throw new AssertionError("nothing waits for a look-up");
                    }

                    @Override
                    public void onWaiting0(long bytes) {}
                },
                System::nanoTime);
        DatagramDestinations.Entry entry = destinations.find(SERVER);
        DatagramDestinationsTest.Destination found = device.started.getFirst();
        found.peer = DatagramPeer.of(SERVER.getAddress(), 17);
        assertThat(destinations.onResolved(found, null)).isTrue();
        return entry;
    }

    /** What is sent from registered memory, or once there is some, is sent. */
    @Test
    void aDatagramThatCannotBeCopiedFailsByItself() {
        DatagramDestinations.Entry recipient = recipient();
        DatagramOutbound outbound = new DatagramOutbound(device, buffers, counters);
        EmbeddedChannel channel = new EmbeddedChannel();
        ChannelOutboundBuffer written = Objects.requireNonNull(channel.unsafe().outboundBuffer());
        ByteBuf foreign = Unpooled.wrappedBuffer(new byte[100]);
        refuse(true);
        ChannelPromise refused = write(channel, recipient, foreign);
        outbound.handOverFlushed(written);
        assertThat(refused.cause()).isInstanceOf(RegisteredMemoryExhaustedException.class);
        assertThat(foreign.refCnt()).isZero();
        assertThat(device.sends).hasValue(0);
        refuse(false);
        ChannelPromise taken = write(channel, recipient, Unpooled.wrappedBuffer(new byte[100]));
        outbound.handOverFlushed(written);
        assertThat(device.sends).hasValue(1);
        outbound.onSent(WorkStatus.SUCCESS, written);
        assertThat(taken.isSuccess()).isTrue();
        assertThat(counters.get(DatagramCounters.FAILED)).isEqualTo(1);
        assertThat(counters.get(DatagramCounters.SENT)).isEqualTo(1);
        assertThat(pool.metrics().usedBytes()).isZero();
    }

    private static ChannelPromise write(EmbeddedChannel channel, DatagramDestinations.Entry to, ByteBuf content) {
        ChannelPromise promise = new DefaultChannelPromise(channel);
        ChannelOutboundBuffer written = Objects.requireNonNull(channel.unsafe().outboundBuffer());
        written.addMessage(new Outgoing(content, to, false, 0).use(), content.readableBytes(), promise);
        written.addFlush();
        return promise;
    }
}
