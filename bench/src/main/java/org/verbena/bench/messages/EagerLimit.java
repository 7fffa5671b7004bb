package org.verbena.bench.messages;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.WriteBufferWaterMark;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.bench.EchoHandler;
import org.verbena.bench.JavaProcess;

/**
 * Where the eager limit ({@link RdmaChannelOption#RENDEZVOUS_THRESHOLD_BYTES}) belongs: echoes of messages of sizes
 * around it, once all of them eager (in fragments above the receive buffer), once all by rendezvous, in turns between
 * the same two processes.
 *
 * <p>The limit that suits a machine is the size above which rendezvous is faster, both for single messages and with
 * several under way.
 */
@SuppressWarnings("CatchAndPrintStackTrace") // a measuring program
public final class EagerLimit {
    private static final int[] SIZES = {
        4 << 10, 8 << 10, 16 << 10, 32 << 10, 48 << 10, 64 << 10, 96 << 10, 128 << 10, 192 << 10, 256 << 10, 512 << 10,
        1 << 20
    };
    private static final int[] WINDOWS = {1, 16};
    private static final int EAGER = Integer.MAX_VALUE;
    private static final int RENDEZVOUS = 0;

    private static final String PORTS = "PORTS";

    private String provider = "soft";
    private String host = "127.0.0.1";
    private int rounds = 5;
    private double seconds = 0.5;
    private int[] sizes = SIZES;

    private EagerLimit() {}

    /**
     * The command line.
     *
     * @param arguments see bench/README.md
     * @throws Exception what went wrong
     */
    public static void main(String... arguments) throws Exception {
        if (arguments.length == 3 && arguments[0].equals("server")) {
            serve(arguments[1], arguments[2]);
            return;
        }
        EagerLimit limit = new EagerLimit();
        for (int i = 0; i < arguments.length; i++) {
            switch (arguments[i]) {
                case "--provider" -> limit.provider = arguments[++i];
                case "--host" -> limit.host = arguments[++i];
                case "--rounds" -> limit.rounds = Integer.parseInt(arguments[++i]);
                case "--seconds" -> limit.seconds = Double.parseDouble(arguments[++i]);
                default -> {
                    limit.sizes = Arrays.stream(arguments)
                            .skip(i)
                            .mapToInt(Integer::parseInt)
                            .toArray();
                    i = arguments.length;
                }
            }
        }
        limit.run();
        System.exit(0);
    }

    private static void setUp(Channel channel, int thresholdBytes, ChannelInboundHandlerAdapter handler) {
        channel.config().setOption(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, thresholdBytes);
        channel.config()
                .setOption(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(32 << 20, 128 << 20));
        channel.pipeline().addLast(handler);
    }

    private static void serve(String provider, String host) throws Exception {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
        StringBuilder ports = new StringBuilder(PORTS);
        for (int thresholdBytes : new int[] {EAGER, RENDEZVOUS}) {
            Channel server = new ServerBootstrap()
                    .group(group)
                    .channel(RdmaServerChannel.class)
                    .childHandler(new ChannelInitializer<>() {
                        @Override
                        protected void initChannel(Channel channel) {
                            setUp(channel, thresholdBytes, new EchoHandler());
                        }
                    })
                    .bind(host, 0)
                    .sync()
                    .channel();
            ports.append(' ').append(((InetSocketAddress) server.localAddress()).getPort());
        }
        System.out.println(ports);
        while (System.in.read() >= 0) {
            // nothing is ever written to it; it ends with the client
        }
        System.exit(0);
    }

    private void run() throws Exception {
        Process server = JavaProcess.start(JavaProcess.command(
                ManagementFactory.getRuntimeMXBean().getInputArguments(), EagerLimit.class, "server", provider, host));
        try {
            String[] ports = JavaProcess.awaitLine(server, PORTS + " ").split(" ");
            RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
            Client eager = new Client(group, Integer.parseInt(ports[0]), EAGER);
            Client rendezvous = new Client(group, Integer.parseInt(ports[1]), RENDEZVOUS);
            report(eager, rendezvous);
            if (!eager.channel.isActive() || !rendezvous.channel.isActive()) {
                throw new IOException("a connection was lost");
            }
            group.close();
        } finally {
            JavaProcess.end(server);
        }
    }

    private void report(Client eager, Client rendezvous) throws Exception {
        System.out.printf("%s at %s; %d rounds of %.1f s each, medians%n%n", provider, host, rounds, seconds);
        System.out.printf(
                "%-10s%-8s%14s%14s%12s%16s%16s%12s%n",
                "bytes",
                "window",
                "eager p50 us",
                "rdvz p50 us",
                "rdvz/eager",
                "eager msg/s",
                "rdvz msg/s",
                "rdvz/eager");
        for (Client client : List.of(eager, rendezvous)) { // the JIT sees everything first
            for (int size : sizes) {
                for (int window : WINDOWS) {
                    client.measure(size, window, seconds / 2);
                }
            }
        }
        for (int size : sizes) {
            for (int window : WINDOWS) {
                double[][] p50 = new double[2][rounds];
                double[][] rate = new double[2][rounds];
                for (int round = 0; round < rounds; round++) {
                    for (int which = 0; which < 2; which++) {
                        Client client = which == 0 ? eager : rendezvous;
                        Run run = client.measure(size, window, seconds);
                        p50[which][round] = run.times.getValueAtPercentile(50) / 1e3;
                        rate[which][round] = run.times.getTotalCount() / run.tookSeconds;
                    }
                }
                double eagerP50 = median(p50[0]);
                double rendezvousP50 = median(p50[1]);
                double eagerRate = median(rate[0]);
                double rendezvousRate = median(rate[1]);
                System.out.printf(
                        "%-10d%-8d%14.1f%14.1f%12.2f%,16.0f%,16.0f%12.2f%n",
                        size,
                        window,
                        eagerP50,
                        rendezvousP50,
                        rendezvousP50 / eagerP50,
                        eagerRate,
                        rendezvousRate,
                        rendezvousRate / eagerRate);
            }
        }
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    /** One measurement; only its loop uses it until it is done. */
    private static final class Run {
        final Histogram times = new Histogram(60_000_000_000L, 3);
        final CompletableFuture<Run> done = new CompletableFuture<>();
        final long[] sentAt;
        final int size;
        final long startNanos = System.nanoTime();
        final long endNanos;
        long sent;
        long received;
        double tookSeconds;

        Run(int size, int window, double seconds) {
            this.size = size;
            sentAt = new long[window];
            endNanos = startNanos + (long) (seconds * 1e9);
        }
    }

    private final class Client extends ChannelInboundHandlerAdapter {
        final Channel channel;
        private Run run = new Run(1, 1, 0);

        Client(RdmaEventLoopGroup group, int port, int thresholdBytes) throws InterruptedException {
            Client handler = this;
            channel = new Bootstrap()
                    .group(group)
                    .channel(RdmaChannel.class)
                    .handler(new ChannelInitializer<>() {
                        @Override
                        protected void initChannel(Channel connecting) {
                            setUp(connecting, thresholdBytes, handler);
                        }
                    })
                    .connect(host, port)
                    .sync()
                    .channel();
        }

        Run measure(int size, int window, double forSeconds) throws Exception {
            Run next = new Run(size, window, forSeconds);
            channel.eventLoop().execute(() -> {
                run = next;
                for (int i = 0; i < window; i++) {
                    send();
                }
                channel.flush();
            });
            return next.done.get(60, TimeUnit.SECONDS);
        }

        private void send() {
            ByteBuf message = channel.alloc().directBuffer(run.size);
            message.writeLong(run.sent).writerIndex(run.size);
            run.sentAt[(int) (run.sent++ % run.sentAt.length)] = System.nanoTime();
            channel.write(message, channel.voidPromise());
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object came) {
            ByteBuf message = (ByteBuf) came;
            Run now = run;
            long number = message.getLong(0 + message.readerIndex());
            boolean right = message.readableBytes() == now.size && number == now.received;
            message.release();
            if (!right) {
                throw new IllegalStateException("a wrong echo: " + number + " instead of " + now.received);
            }
            long nanos = System.nanoTime();
            now.times.recordValue(nanos - now.sentAt[(int) (now.received++ % now.sentAt.length)]);
            if (nanos < now.endNanos) {
                send();
            } else if (now.received == now.sent) {
                now.tookSeconds = (nanos - now.startNanos) / 1e9;
                now.done.complete(now);
            }
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            run.done.completeExceptionally(cause);
            context.close();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            run.done.completeExceptionally(new IOException("the connection was lost"));
        }
    }
}
