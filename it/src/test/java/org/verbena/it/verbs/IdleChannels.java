package org.verbena.it.verbs;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.verbena.api.MemoryInUse;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;

/** A process with both ends of many channels, each of which has made a few requests. Says what one end costs. */
final class IdleChannels {
    private static final int REQUEST_BYTES = 64;
    private static final int REQUESTS = 3;

    /** These bring what all share. */
    private static final int FIRST = 4;

    private static final int SECONDS = 60;

    private IdleChannels() {}

    /**
     * Prints {@code idle HEAP REGISTERED CREDITS}: bytes of an end, and the least window of any.
     *
     * @param arguments provider, host, how many channels
     */
    public static void main(String... arguments) {
        try {
            measure(arguments);
            System.exit(0);
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            System.exit(1); // the loops would go on
        }
    }

    private static void measure(String... arguments) throws Exception {
        int channels = Integer.parseInt(arguments[2]);
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 1);
        Replies replies = new Replies();
        AtomicInteger accepted = new AtomicInteger();
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .childOption(RdmaChannelOption.SEND_DEPTH, 16)
                .childHandler(new Echo(accepted))
                .bind(arguments[1], 0)
                .sync()
                .channel();
        Bootstrap bootstrap = new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .option(RdmaChannelOption.SEND_DEPTH, 16)
                .handler(replies);
        List<Channel> connected = new ArrayList<>();
        open(bootstrap, server, FIRST, connected, replies);
        long heapBefore = MemoryInUse.heapBytes();
        long registeredBefore = MemoryInUse.registeredBytes(group);
        open(bootstrap, server, channels, connected, replies);
        long heapAfter = MemoryInUse.heapBytes();
        long registeredAfter = MemoryInUse.registeredBytes(group);
        if (accepted.get() != FIRST + channels) {
            throw new IllegalStateException("accepted " + accepted);
        }
        long credits = connected.stream()
                .mapToLong(channel -> ((RdmaChannel) channel).statistics().credits())
                .min()
                .orElseThrow();
        System.out.println("idle " + (heapAfter - heapBefore) / (2L * channels) + " "
                + (registeredAfter - registeredBefore) / (2L * channels) + " " + credits);
    }

    private static void open(Bootstrap bootstrap, Channel server, int count, List<Channel> connected, Replies replies)
            throws Exception {
        for (int i = 0; i < count; i++) {
            Channel channel = bootstrap.connect(server.localAddress()).sync().channel();
            connected.add(channel);
            for (int j = 0; j < REQUESTS; j++) {
                channel.writeAndFlush(channel.alloc().buffer(REQUEST_BYTES).writeZero(REQUEST_BYTES));
                if (!replies.came.tryAcquire(SECONDS, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("no reply on channel " + connected.size());
                }
            }
        }
    }

    @ChannelHandler.Sharable
    private static final class Echo extends ChannelInboundHandlerAdapter {
        private final AtomicInteger accepted;

        Echo(AtomicInteger accepted) {
            this.accepted = accepted;
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            accepted.incrementAndGet();
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.writeAndFlush(message);
        }
    }

    @ChannelHandler.Sharable
    private static final class Replies extends ChannelInboundHandlerAdapter {
        final Semaphore came = new Semaphore(0);

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ((ByteBuf) message).release();
            came.release();
        }
    }
}
