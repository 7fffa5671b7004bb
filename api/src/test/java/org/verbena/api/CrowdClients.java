package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.AttributeKey;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.verbena.transport.MessageStatistics;

/**
 * The clients of {@link ManyChannelsSuite}: a process of its own. Opens many channels, then sends on each, and checks
 * what comes back. Meanwhile it counts the frames of requests and their replies.
 */
final class CrowdClients {
    private static final int REQUEST_BYTES = 64;

    /** How many replies a channel awaits. */
    private static final AttributeKey<AtomicInteger> LEFT = AttributeKey.valueOf(CrowdClients.class, "LEFT");

    /** Counted down when it has the last. */
    private static final AttributeKey<CountDownLatch> OVER = AttributeKey.valueOf(CrowdClients.class, "OVER");

    private CrowdClients() {}

    public static void main(String... arguments) throws Exception {
        int count = Integer.parseInt(arguments[3]);
        CountDownLatch echoed = new CountDownLatch(count);
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 2);
        Check check = new Check(echoed);
        Bootstrap bootstrap =
                new Bootstrap().group(group).channel(RdmaChannel.class).handler(check);
        if (Boolean.parseBoolean(arguments[4])) {
            bootstrap.option(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true).option(RdmaChannelOption.SEND_DEPTH, 16);
        }
        List<Channel> channels = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            channels.add(bootstrap
                    .connect(arguments[1], Integer.parseInt(arguments[2]))
                    .sync()
                    .channel());
            if (i == 1) {
                check.awaitMeasured(); // what all channels share
                countFrames(channels.subList(0, 1), 1000);
            } else if (i == 99) {
                countFrames(channels, 30);
            }
        }
        check.awaitMeasured(); // what idle channels cost
        countFrames(channels, 5);
        for (int i = 0; i < count; i++) {
            Channel channel = channels.get(i);
            ByteBuf message = channel.alloc().buffer(1000, 1000);
            for (int j = 0; j < 250; j++) {
                message.writeInt(channel.id().hashCode() + j);
            }
            channel.writeAndFlush(message);
        }
        boolean all = echoed.await(120, TimeUnit.SECONDS);
        System.out.println("echoed " + (count - echoed.getCount()));
        for (Channel channel : channels) {
            channel.close();
        }
        for (Channel channel : channels) {
            channel.closeFuture().sync();
        }
        System.exit(all ? 0 : 1);
    }

    /** Each channel sends a request when it has the reply to the one before. Counts what both ends send. */
    private static void countFrames(List<Channel> channels, int rounds) throws InterruptedException {
        long before = frames(channels);
        CountDownLatch over = new CountDownLatch(channels.size());
        for (Channel channel : channels) {
            channel.attr(LEFT).set(new AtomicInteger(rounds));
            channel.attr(OVER).set(over);
        }
        channels.forEach(CrowdClients::request);
        if (!over.await(120, TimeUnit.SECONDS)) {
            throw new IllegalStateException(over.getCount() + " channels wait for replies");
        }
        System.out.println(
                "frames " + channels.size() + " " + 2L * channels.size() * rounds + " " + (frames(channels) - before));
    }

    private static long frames(List<Channel> channels) {
        long frames = 0;
        for (Channel channel : channels) {
            MessageStatistics statistics = ((RdmaChannel) channel).statistics();
            frames += statistics.framesSent() + statistics.framesReceived();
        }
        return frames;
    }

    private static void request(Channel channel) {
        channel.writeAndFlush(channel.alloc().buffer(REQUEST_BYTES).writeZero(REQUEST_BYTES));
    }

    @ChannelHandler.Sharable
    private static final class Check extends ChannelInboundHandlerAdapter {
        private final CountDownLatch echoed;

        /** How often the server has said that it has measured, by a message of one byte. */
        private final Semaphore measured = new Semaphore(0);

        void awaitMeasured() throws InterruptedException {
            if (!measured.tryAcquire(120, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the server did not measure");
            }
        }

        Check(CountDownLatch echoed) {
            this.echoed = echoed;
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf echo = (ByteBuf) message;
            if (echo.readableBytes() == 1) {
                echo.release();
                measured.release();
                return;
            }
            if (echo.readableBytes() == REQUEST_BYTES) {
                echo.release();
                if (context.channel().attr(LEFT).get().decrementAndGet() > 0) {
                    request(context.channel());
                } else {
                    context.channel().attr(OVER).get().countDown();
                }
                return;
            }
            boolean same = echo.readableBytes() == 1000;
            for (int j = 0; same && j < 250; j++) {
                same = echo.readInt() == context.channel().id().hashCode() + j;
            }
            echo.release();
            if (same) {
                echoed.countDown();
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            cause.printStackTrace();
            context.close();
        }
    }
}
