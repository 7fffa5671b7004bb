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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.transport.protocol.MessageOptions;

/**
 * Messages in one direction through the Channel API, to be set beside {@code ib_send_bw}:
 * {@code server PROVIDER HOST PORT}, and {@code client PROVIDER HOST PORT COUNT SIZE SECONDS [LIMIT]}, where SECONDS of
 * traffic come first and do not count, and LIMIT is the eager limit. The client prints MiB/s, from the first write that
 * counts to the receiver's word that it has the last message.
 */
@SuppressWarnings("CatchAndPrintStackTrace") // a measuring program
public final class SendBandwidth {
    private SendBandwidth() {}

    /**
     * The command line.
     *
     * @param arguments see above
     * @throws Exception what went wrong
     */
    public static void main(String... arguments) throws Exception {
        String provider = arguments[1];
        String host = arguments[2];
        int port = Integer.parseInt(arguments[3]);
        if (arguments[0].equals("server")) {
            serve(provider, host, port);
            return;
        }
        int count = Integer.parseInt(arguments[4]);
        int size = Integer.parseInt(arguments[5]);
        int warmUpSeconds = Integer.parseInt(arguments[6]);
        int limitBytes = arguments.length > 7
                ? Integer.parseInt(arguments[7])
                : MessageOptions.DEFAULTS.rendezvousThresholdBytes();
        Client client = new Client(count, size, TimeUnit.SECONDS.toNanos(warmUpSeconds));
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
        Channel channel = new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .handler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel connecting) {
                        connecting.config().setOption(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, limitBytes);
                        connecting
                                .config()
                                .setOption(
                                        ChannelOption.WRITE_BUFFER_WATER_MARK,
                                        new WriteBufferWaterMark(8 << 20, 16 << 20));
                        connecting.pipeline().addLast(client);
                    }
                })
                .connect(host, port)
                .sync()
                .channel();
        System.out.printf("%.1f%n", client.result.get(600, TimeUnit.SECONDS));
        channel.close().sync();
        group.close();
        System.exit(0);
    }

    private static void serve(String provider, String host, int port) throws Exception {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel accepting) {
                        accepting.pipeline().addLast(new Receiver());
                    }
                })
                .bind(host, port)
                .sync()
                .channel();
        System.out.println("listening");
        server.closeFuture().sync();
    }

    /** Answers the messages that ask for it: those that begin with a number below 0. */
    private static final class Receiver extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object came) {
            ByteBuf message = (ByteBuf) came;
            long number = message.readLong();
            message.release();
            if (number < 0) {
                context.writeAndFlush(context.alloc().directBuffer(8).writeLong(number), context.voidPromise());
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            cause.printStackTrace();
            context.close();
        }
    }

    private static final class Client extends ChannelInboundHandlerAdapter {
        final CompletableFuture<Double> result = new CompletableFuture<>();
        private final int count;
        private final int size;
        private final long warmUpNanos;

        /** Sent since the measurement began, or the warm-up. */
        private int sent;

        private long beganNanos;
        private boolean warm;
        private boolean asked;

        Client(int count, int size, long warmUpNanos) {
            this.count = count;
            this.size = size;
            this.warmUpNanos = warmUpNanos;
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            beganNanos = System.nanoTime();
            send(context);
        }

        /** The last one asks for an answer, and nothing is sent until it has come. */
        private void send(ChannelHandlerContext context) {
            while (!asked && context.channel().isWritable()) {
                sent++;
                asked = warm ? sent == count : System.nanoTime() - beganNanos >= warmUpNanos;
                ByteBuf message = context.alloc().directBuffer(size);
                message.writeLong(asked ? -sent : sent).writerIndex(size);
                context.write(message, context.voidPromise());
            }
            context.flush();
        }

        @Override
        public void channelWritabilityChanged(ChannelHandlerContext context) {
            send(context);
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object came) {
            ByteBuf answer = (ByteBuf) came;
            long number = -answer.readLong();
            answer.release();
            long now = System.nanoTime();
            if (number != sent || !asked) {
                result.completeExceptionally(new IOException("a wrong answer: " + number));
            } else if (warm) {
                result.complete((double) count * size / (1 << 20) / ((now - beganNanos) / 1e9));
            } else {
                warm = true;
                asked = false;
                sent = 0;
                beganNanos = now;
                send(context);
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            result.completeExceptionally(cause);
            context.close();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            result.completeExceptionally(new IOException("the connection was lost"));
        }
    }
}
