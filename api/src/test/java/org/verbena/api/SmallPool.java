package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.spi.Patience;

/**
 * Channels in a process with little registered memory: provider, host, and what to try. Prints what became of it.
 */
final class SmallPool {
    private static final int LARGE_BYTES = 40 << 20;
    private static final long PATIENCE_SECONDS = 100;

    private final RdmaEventLoopGroup group;
    private final String host;

    private SmallPool(String provider, String host) {
        group = new RdmaEventLoopGroup(provider, 2);
        this.host = host;
    }

    public static void main(String... arguments) {
        try {
            SmallPool pool = new SmallPool(arguments[0], arguments[1]);
            switch (arguments[2]) {
                case "turns" -> pool.largeMessagesTakeTurns();
                case "refused" -> pool.aMessageOverThePoolIsRefused();
                case "kept" -> pool.keptMessagesStopOnlyTheirSender();
                default -> throw new IllegalArgumentException(arguments[2]);
            }
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private Channel serve(ChannelInboundHandlerAdapter handler) throws Exception {
        return new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel accepting) {
                        accepting.pipeline().addLast(handler);
                    }
                })
                .bind(host, 0)
                .sync()
                .channel();
    }

    private Channel connect(Channel server, ChannelInboundHandlerAdapter handler) throws Exception {
        return new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .handler(handler)
                .connect(server.localAddress())
                .sync()
                .channel();
    }

    /** Eight at once into a pool that holds one of them beside the receives; then a ninth client gets in. */
    private void largeMessagesTakeTurns() throws Exception {
        CountDownLatch came = new CountDownLatch(8);
        CountDownLatch greeted = new CountDownLatch(1);
        Channel server = serve(new Sharable() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object message) {
                ByteBuf buffer = (ByteBuf) message;
                if (buffer.readableBytes() == LARGE_BYTES) {
                    came.countDown();
                } else {
                    greeted.countDown();
                }
                buffer.release();
            }
        });
        byte[] bytes = new byte[LARGE_BYTES]; // on the heap, so it goes in fragments
        List<ChannelFuture> sent = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            sent.add(connect(server, new Sharable()).writeAndFlush(Unpooled.wrappedBuffer(bytes)));
        }
        boolean all = came.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
        for (ChannelFuture future : sent) {
            all &= future.await(PATIENCE_SECONDS, TimeUnit.SECONDS) && future.isSuccess();
        }
        connect(server, new Sharable()).writeAndFlush(Unpooled.wrappedBuffer(new byte[10]));
        all &= greeted.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
        System.out.println("outcome " + all + " " + came.getCount() + " missing");
    }

    private void aMessageOverThePoolIsRefused() throws Exception {
        Channel server = serve(new Sharable());
        ChannelFuture future =
                connect(server, new Sharable()).writeAndFlush(Unpooled.wrappedBuffer(new byte[30 << 20]));
        future.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
        System.out.println("outcome " + future.cause());
    }

    /** A handler that keeps all that one client sends, beside a client that asks and is answered. */
    private void keptMessagesStopOnlyTheirSender() throws Exception {
        BlockingQueue<ByteBuf> kept = new LinkedBlockingQueue<>();
        Channel server = serve(new Sharable() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object message) {
                ByteBuf buffer = (ByteBuf) message;
                if (buffer.readableBytes() == 8) {
                    context.writeAndFlush(buffer);
                } else {
                    kept.add(buffer);
                }
            }
        });
        SynchronousQueue<ByteBuf> answers = new SynchronousQueue<>();
        Channel asking = connect(server, new Sharable() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object message) throws Exception {
                answers.offer((ByteBuf) message, PATIENCE_SECONDS, TimeUnit.SECONDS);
            }
        });
        long undisturbed = p99Micros(asking, answers);
        Channel flooding = connect(server, new Sharable());
        int count = 40_000;
        byte[] bytes = new byte[40_000];
        for (int i = 0; i < count; i++) {
            flooding.write(Unpooled.wrappedBuffer(bytes, 0, i % 2 == 0 ? 64 : bytes.length));
        }
        ChannelFuture last = flooding.writeAndFlush(Unpooled.wrappedBuffer(new byte[64]));
        long before = -1;
        while (kept.size() != before) {
            before = kept.size();
            Patience.turns(flooding.eventLoop(), asking.eventLoop());
        }
        boolean stopped = !last.isDone() && !flooding.isWritable();
        long disturbed = p99Micros(asking, answers);
        long usedBytes = group.providerStatistics().receiveBuffers().usedBytes();
        boolean all = true;
        for (int released = 0; released <= count && all; released++) {
            ByteBuf buffer = kept.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            all = buffer != null && buffer.release();
        }
        System.out.println("outcome stopped " + stopped + " used " + usedBytes + " all " + all + " p99 " + undisturbed
                + " us alone and " + disturbed + " us beside it, " + before + " kept");
    }

    private static long p99Micros(Channel asking, SynchronousQueue<ByteBuf> answers) throws Exception {
        int rounds = 2000;
        long[] nanos = new long[rounds];
        for (int i = 0; i < rounds; i++) {
            long begin = System.nanoTime();
            asking.writeAndFlush(asking.alloc().buffer(8).writeLong(i));
            ByteBuf answer = answers.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            if (answer == null) {
                throw new AssertionError("no answer");
            }
            answer.release();
            nanos[i] = System.nanoTime() - begin;
        }
        Arrays.sort(nanos);
        return nanos[rounds * 99 / 100] / 1000;
    }

    @io.netty.channel.ChannelHandler.Sharable
    private static class Sharable extends ChannelInboundHandlerAdapter {
        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            cause.printStackTrace();
        }
    }
}
