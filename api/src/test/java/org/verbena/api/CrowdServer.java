package org.verbena.api;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.util.internal.PlatformDependent;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** The server of {@link ManyChannelsSuite}: a process of its own. Echoes, and says what its channels cost. */
final class CrowdServer {
    private CrowdServer() {}

    public static void main(String... arguments) throws Exception {
        int expected = Integer.parseInt(arguments[2]);
        CountDownLatch begun = new CountDownLatch(2);
        CountDownLatch active = new CountDownLatch(expected);
        CountDownLatch ended = new CountDownLatch(expected);
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 2);
        Echo echo = new Echo(begun, active, ended);
        ServerBootstrap bootstrap = new ServerBootstrap();
        if (Boolean.parseBoolean(arguments[3])) {
            bootstrap
                    .childOption(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true)
                    .childOption(RdmaChannelOption.SEND_DEPTH, 16);
        }
        Channel server = bootstrap
                .group(group)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel accepting) {
                        accepting.pipeline().addLast(echo);
                    }
                })
                .bind(arguments[1], 0)
                .sync()
                .channel();
        System.out.println("listening " + ((InetSocketAddress) server.localAddress()).getPort());
        // The first channel brings what all share: classes, pools, the shared receive queue of its loop; the second the
        // queue of the other loop. The clients go on when they are told.
        begun.await();
        long heapBefore = MemoryInUse.heapBytes();
        long outsideBefore = directBytes() + MemoryInUse.registeredBytes(group);
        long sharedBefore = sharedBytes();
        echo.tellMeasured();
        if (!active.await(Integer.parseInt(arguments[4]), TimeUnit.SECONDS)) {
            System.err.println(active.getCount() + " of " + expected + " channels did not come");
            System.exit(1);
        }
        // All are open and idle now; the clients begin when they are told.
        long heapAfter = MemoryInUse.heapBytes();
        long outsideAfter = directBytes() + MemoryInUse.registeredBytes(group);
        long sharedAfter = sharedBytes();
        echo.tellMeasured();
        // Then they echo, and close.
        ended.await();
        System.out.println("figures " + MemoryInUse.heapBytes() + " " + directBytes() + " " + registeredBytes(group)
                + " "
                + (heapAfter - heapBefore) / (expected - 2) + " " + (outsideAfter - outsideBefore) / (expected - 2)
                + " " + (sharedAfter - sharedBefore) / (expected - 2));
        server.close().sync();
        group.close();
        System.exit(echo.failures.get() == 0 ? 0 : 1);
    }

    private static long directBytes() {
        return Math.max(0, PlatformDependent.usedDirectMemory())
                + ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
                        .filter(pool -> pool.getName().equals("direct"))
                        .mapToLong(BufferPoolMXBean::getMemoryUsed)
                        .sum();
    }

    /**
     * What is in memory of the files of connections through shared memory, and of their doorbells: this process's part
     * of what it shares, as the kernel counts it. The chunks of the pools are not in it.
     */
    private static long sharedBytes() throws IOException {
        Path smaps = Path.of("/proc/self/smaps");
        long kib = 0;
        boolean isCounted = false;
        if (Files.exists(smaps)) {
            for (String line : Files.readAllLines(smaps)) {
                if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
                    isCounted = line.contains("/memfd:verbena (") || line.contains("/memfd:verbena-doorbell");
                } else if (isCounted && line.startsWith("Pss:")) {
                    kib += Long.parseLong(line.replaceAll("\\D", ""));
                }
            }
        }
        return kib << 10;
    }

    private static long registeredBytes(RdmaEventLoopGroup group) {
        return group.providerStatistics().loops().registeredBytes();
    }

    @ChannelHandler.Sharable
    private static final class Echo extends ChannelInboundHandlerAdapter {
        private final CountDownLatch begun;
        private final CountDownLatch active;
        private final CountDownLatch ended;
        private final AtomicReference<Channel> first = new AtomicReference<>();
        final AtomicInteger failures = new AtomicInteger();

        Echo(CountDownLatch begun, CountDownLatch active, CountDownLatch ended) {
            this.begun = begun;
            this.active = active;
            this.ended = ended;
        }

        /** A message of one byte to the clients. */
        void tellMeasured() {
            Channel channel = first.get();
            channel.writeAndFlush(channel.alloc().buffer(1).writeByte(1));
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            first.compareAndSet(null, context.channel());
            begun.countDown();
            active.countDown();
            context.fireChannelActive();
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.writeAndFlush((ByteBuf) message);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            ended.countDown();
            context.fireChannelInactive();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            cause.printStackTrace();
            failures.incrementAndGet();
            context.close();
        }
    }
}
