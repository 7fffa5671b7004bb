package org.verbena.tools.perf;

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
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.Framing;

/** Sends without the channel's protocol. {@link SendProtocol} describes how they respect the server's receives. */
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
        SendProtocol protocol = SendProtocol.of(bytes, load.window(), load.isBidirectional());
        Channel channel = new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .option(RdmaChannelOption.FRAMING, Framing.RAW)
                .option(RdmaChannelOption.RECEIVE_DEPTH, protocol.posted())
                .option(RdmaChannelOption.RECEIVE_BUFFER_BYTES, protocol.answerBytes(isLatency))
                .option(RdmaChannelOption.CONNECT_PRIVATE_DATA, protocol.encode())
                .handler(new ChannelInboundHandlerAdapter()) // the sender is added when its loop is known
                .connect(host, port)
                .sync()
                .channel();
        Sender connected = new Sender(channel, protocol);
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
        return ask(PerfProtocol.HOW_MANY);
    }

    @Override
    public void beginReturn(int bytes, PerfClient.Load load) throws InterruptedException {
        Channel channel = sender().channel;
        channel.writeAndFlush(channel.alloc().buffer(1).writeByte(PerfProtocol.BOTH))
                .sync();
    }

    @Override
    public long received() {
        return sender().received.get();
    }

    @Override
    public long endReturn() throws InterruptedException {
        return ask(PerfProtocol.STOP);
    }

    private long ask(byte what) throws InterruptedException {
        Sender asking = sender();
        Promise<Long> answer = asking.loop.newPromise();
        asking.loop.execute(() -> asking.ask0(what, answer));
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
        private final Echoes echoes;

        /** Started, and without a credit so far. */
        private final ArrayDeque<Promise<Boolean>> waiting = new ArrayDeque<>();

        private final SendProtocol protocol;
        private byte what;

        /** Sent one-way, and how many of them the server is known to have received. */
        private long sent;

        private long taken;

        /** Echoes that have not come back. */
        private int away;

        /** The server's own, where it sends as well. */
        private final AtomicLong received = new AtomicLong();

        private @Nullable Promise<Long> asked;

        Sender(Channel channel, SendProtocol protocol) {
            this.channel = channel;
            loop = channel.eventLoop();
            this.protocol = protocol;
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
            while (!waiting.isEmpty() && sent - taken + away < protocol.credits()) {
                Promise<Boolean> done = waiting.remove();
                ChannelFuture posted = channel.writeAndFlush(
                        PerfConnection.filled(channel, protocol.bytes()).setByte(0, what));
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

        void ask0(byte question, Promise<Long> answer) {
            assert loop.inEventLoop();
            asked = answer;
            channel.writeAndFlush(channel.alloc().buffer(1).writeByte(question)).addListener(end -> {
                if (!end.isSuccess()) {
                    answer.tryFailure(end.cause());
                }
            });
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
            switch (message.getByte(message.readerIndex())) {
                case PerfProtocol.ECHO -> {
                    away--;
                    echoes.arrived();
                }
                case PerfProtocol.BOTH -> received0(message.readableBytes());
                case PerfProtocol.STOP -> answered0(message.getLong(message.readerIndex() + 1));
                case PerfProtocol.HOW_MANY -> {
                    taken = message.getLong(message.readerIndex() + 1);
                    answered0(taken);
                }
                default -> taken = message.getLong(message.readerIndex() + 1);
            }
            proceed0();
        }

        private void answered0(long count) {
            if (asked != null) {
                asked.trySuccess(count);
            }
        }

        /** Counts a message of the server, and returns its credit. */
        private void received0(int bytes) {
            if (bytes != protocol.bytes()) {
                fail("a message of the server has " + bytes + " bytes, not " + protocol.bytes());
                channel.close();
                return;
            }
            long count = received.incrementAndGet();
            if (count % protocol.acknowledgedAfter() == 0) {
                channel.writeAndFlush(SendProtocol.answer(SendProtocol.TAKEN, count), channel.voidPromise());
            }
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
