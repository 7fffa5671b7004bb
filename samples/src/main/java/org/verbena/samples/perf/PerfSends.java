package org.verbena.samples.perf;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.ArrayDeque;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.protocol.Framing;

/** Sends without the channel's protocol. {@link SendProtocol} says how they keep to the server's receives. */
final class PerfSends implements PerfSubject {
    private final RdmaEventLoopGroup group;
    private final String host;
    private final int port;
    private @Nullable Sender sender;

    /**
     * Connects for each size, whose receives the server has to post first.
     *
     * @param port where the server takes sends
     */
    PerfSends(RdmaEventLoopGroup group, String host, int port) {
        this.group = group;
        this.host = host;
        this.port = port;
    }

    @Override
    public Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes, PerfClient.Load load)
            throws InterruptedException {
        close();
        SendProtocol protocol = SendProtocol.of(bytes, load.window());
        Channel channel = new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .option(RdmaChannelOption.FRAMING, Framing.RAW)
                .option(RdmaChannelOption.RECEIVE_DEPTH, protocol.receives())
                .option(RdmaChannelOption.RECEIVE_BUFFER_BYTES, protocol.answerBytes(isLatency))
                .option(RdmaChannelOption.CONNECT_PRIVATE_DATA, protocol.encode())
                .handler(new ChannelInboundHandlerAdapter()) // the sender comes when its loop is known
                .connect(host, port)
                .sync()
                .channel();
        Sender connected = new Sender(channel, bytes, protocol.credits());
        channel.pipeline().addLast(connected);
        sender = connected;
        return isLatency ? () -> connected.start0(PerfProtocol.ECHO) : () -> connected.start0(PerfProtocol.COUNT);
    }

    private Sender sender() {
        if (sender == null) {
            throw new IllegalStateException("no size was prepared");
        }
        return sender;
    }

    @Override
    public EventLoop loop() {
        return sender().loop;
    }

    @Override
    public long arrived() throws InterruptedException {
        Sender asking = sender();
        Promise<Long> answer = asking.loop.newPromise();
        asking.loop.execute(() -> asking.ask0(answer));
        return answer.sync().getNow();
    }

    @Override
    public void close() {
        if (sender != null) {
            sender.channel.close().awaitUninterruptibly();
            sender = null;
        }
    }

    /** Sends as long as there are credits. Used on the channel's loop. */
    private static final class Sender extends SimpleChannelInboundHandler<ByteBuf> {
        private final Channel channel;
        private final EventLoop loop;
        private final int bytes;
        private final Echoes echoes;

        /** Started, and without a credit so far. */
        private final ArrayDeque<Promise<Boolean>> waiting = new ArrayDeque<>();

        private final int credits;
        private byte what;

        /** Sent one-way, and how many of them the server is known to have taken. */
        private long sent;

        private long taken;

        /** Echoes that have not come back. */
        private int away;

        private @Nullable Promise<Long> asked;

        Sender(Channel channel, int bytes, int credits) {
            this.channel = channel;
            loop = channel.eventLoop();
            this.bytes = bytes;
            this.credits = credits;
            echoes = new Echoes(loop);
        }

        Future<?> start0(byte kind) {
            assert loop.inEventLoop();
            what = kind;
            Promise<Boolean> done = loop.newPromise();
            waiting.add(done);
            proceed0();
            return done;
        }

        private void proceed0() {
            while (!waiting.isEmpty() && sent - taken + away < credits) {
                Promise<Boolean> done = waiting.remove();
                ChannelFuture posted = channel.writeAndFlush(
                        PerfConnection.filled(channel, bytes).setByte(0, what));
                if (what == PerfProtocol.ECHO) {
                    away++;
                    echoes.expect(posted, done);
                } else {
                    sent++;
                    posted.addListener(end -> {
                        if (end.isSuccess()) {
                            done.trySuccess(true);
                        } else {
                            done.tryFailure(end.cause());
                        }
                    });
                }
            }
        }

        void ask0(Promise<Long> answer) {
            assert loop.inEventLoop();
            asked = answer;
            channel.writeAndFlush(channel.alloc().buffer(1).writeByte(PerfProtocol.HOW_MANY))
                    .addListener(end -> {
                        if (!end.isSuccess()) {
                            answer.tryFailure(end.cause());
                        }
                    });
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
            if (message.getByte(message.readerIndex()) == PerfProtocol.ECHO) {
                away--;
                echoes.arrived();
            } else {
                boolean isAnswer = message.readByte() == PerfProtocol.HOW_MANY;
                taken = message.readLong();
                if (isAnswer && asked != null) {
                    asked.trySuccess(taken);
                }
            }
            proceed0();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            fail("the server closed the connection for sends");
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            fail(String.valueOf(cause.getMessage()));
            context.close();
        }

        private void fail(String why) {
            echoes.fail(why);
            while (!waiting.isEmpty()) {
                waiting.remove().tryFailure(new CommandFailure(why));
            }
            if (asked != null) {
                asked.tryFailure(new CommandFailure(why));
            }
        }
    }
}
