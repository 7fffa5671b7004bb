package org.verbena.bench.idle;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.bench.JavaProcess;
import org.verbena.transport.protocol.MessageOptions;

/**
 * CPU time of two processes with many idle channels between them, on the software provider: with keepalive as it is by
 * default, and without. See bench/README.md.
 */
public final class Idle {
    private static final String HOST = "127.0.0.1";
    private static final int LOOPS = 2;
    /** Connects under way at a time. */
    private static final int CONNECTING = 64;
    /** Each channel is entitled to three receives of its loop's shared queue; some more are for those to come. */
    private static final int RECEIVES_PER_CHANNEL = 4;

    private static final int RECEIVE_BUFFER_BYTES = 1024;
    private static final int SETTLE_SECONDS = 30;

    private static final String PORT = "port ";
    private static final String OPEN = "open";

    private Idle() {}

    /** Options as bench/idle has them; or what one of the two processes does. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0 && arguments[0].equals("server")) {
            serve(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
            return;
        }
        if (arguments.length > 0 && arguments[0].equals("client")) {
            connect(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
            return;
        }
        int channels = 10_000;
        int seconds = 60;
        for (int i = 0; i < arguments.length; i += 2) {
            String value = i + 1 < arguments.length ? arguments[i + 1] : "";
            switch (arguments[i]) {
                case "--channels" -> channels = Integer.parseInt(value);
                case "--seconds" -> seconds = Integer.parseInt(value);
                default -> throw new IllegalArgumentException("unknown option " + arguments[i] + ", see bench/idle -h");
            }
        }
        for (int keepAliveMillis : new int[] {MessageOptions.DEFAULTS.keepAliveMillis(), 0}) {
            measure(channels, seconds, keepAliveMillis);
        }
    }

    private static void measure(int channels, int seconds, int keepAliveMillis) throws Exception {
        Process server = start(channels, "server", channels, keepAliveMillis);
        Process client = null;
        try {
            String port = JavaProcess.awaitLine(server, PORT);
            client = start(channels, "client", channels, keepAliveMillis, port);
            JavaProcess.awaitLine(client, OPEN);
            JavaProcess.awaitLine(server, OPEN);
            Thread.sleep(Duration.ofSeconds(SETTLE_SECONDS)); // until the JIT has compiled what connecting took
            Duration serverBefore = cpu(server);
            Duration clientBefore = cpu(client);
            Thread.sleep(Duration.ofSeconds(seconds));
            System.out.printf(
                    "%d idle channels, keepalive %d ms, %d s: CPU time of the server %d ms, of the client %d ms%n",
                    channels,
                    keepAliveMillis,
                    seconds,
                    cpu(server).minus(serverBefore).toMillis(),
                    cpu(client).minus(clientBefore).toMillis());
        } finally {
            // Both at once, so that neither has time to report the end of the other.
            kill(client);
            kill(server);
            awaitEnd(client);
            awaitEnd(server);
        }
    }

    private static Process start(int channels, Object... arguments) throws IOException {
        List<String> flags = JavaProcess.permissionsAnd(
                "-Xmx1g", "-Dorg.verbena.soft.sharedReceiveDepth=" + channels * RECEIVES_PER_CHANNEL / LOOPS);
        String[] texts = Stream.of(arguments).map(Object::toString).toArray(String[]::new);
        return JavaProcess.start(JavaProcess.command(flags, Idle.class, texts));
    }

    private static Duration cpu(Process process) {
        return process.info().totalCpuDuration().orElseThrow();
    }

    private static void kill(@Nullable Process process) {
        if (process != null) {
            process.destroyForcibly();
        }
    }

    private static void awaitEnd(@Nullable Process process) throws InterruptedException {
        if (process != null) {
            process.waitFor();
        }
    }

    // ---- the two processes

    private static Map<ChannelOption<?>, Object> options(int keepAliveMillis) {
        return Map.of(
                RdmaChannelOption.SHARED_RECEIVE_QUEUE,
                true,
                RdmaChannelOption.SEND_DEPTH,
                16,
                RdmaChannelOption.RECEIVE_BUFFER_BYTES,
                RECEIVE_BUFFER_BYTES,
                RdmaChannelOption.KEEP_ALIVE_MILLIS,
                keepAliveMillis);
    }

    /** Says its port, and once more something when all channels are open. */
    private static void serve(int channels, int keepAliveMillis) throws Exception {
        Semaphore active = new Semaphore(0);
        ChannelInboundHandlerAdapter handler = new Watch() {
            @Override
            public void channelActive(ChannelHandlerContext context) {
                active.release();
            }
        };
        ServerBootstrap bootstrap = new ServerBootstrap()
                .group(new RdmaEventLoopGroup("soft", LOOPS))
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel accepted) {
                        accepted.config().setOptions(options(keepAliveMillis));
                        accepted.pipeline().addLast(handler);
                    }
                });
        Channel listening = bootstrap.bind(HOST, 0).sync().channel();
        System.out.println(PORT + ((InetSocketAddress) listening.localAddress()).getPort());
        active.acquire(channels);
        System.out.println(OPEN);
        System.in.transferTo(System.out); // until it is stopped
    }

    /** Says something when all channels are open. */
    private static void connect(int channels, int keepAliveMillis, int port) throws Exception {
        Semaphore mayConnect = new Semaphore(CONNECTING);
        AtomicInteger open = new AtomicInteger();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Bootstrap bootstrap = new Bootstrap()
                .group(new RdmaEventLoopGroup("soft", LOOPS))
                .channel(RdmaChannel.class)
                .handler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.config().setOptions(options(keepAliveMillis));
                        channel.pipeline().addLast(new Watch());
                    }
                });
        ChannelFutureListener connected = future -> {
            if (future.isSuccess()) {
                open.incrementAndGet();
            } else {
                failure.compareAndSet(null, future.cause());
            }
            mayConnect.release();
        };
        for (int i = 0; i < channels; i++) {
            if (!mayConnect.tryAcquire(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("only " + open.get() + " channels are open after a minute");
            }
            ChannelFuture connect = bootstrap.connect(HOST, port);
            connect.addListener(connected);
        }
        mayConnect.acquire(CONNECTING);
        if (open.get() < channels) {
            throw new IllegalStateException("only " + open.get() + " channels are open", failure.get());
        }
        System.out.println(OPEN);
        System.in.transferTo(System.out); // until it is stopped
    }

    /** Ends the process if a channel does: then not so many are idle as is said. */
    @ChannelHandler.Sharable
    private static class Watch extends ChannelInboundHandlerAdapter {
        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            cause.printStackTrace();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            System.err.println(context.channel() + " ended");
            Runtime.getRuntime().halt(1); // at once: the other channels' ends are not worth a word
        }
    }
}
