package org.verbena.tools.perf;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;

/** A stream whose bytes the server sends back, drops, or counts while it sends as well. */
final class PerfStream implements PerfSubject {
    private final Bootstrap bootstrap;
    private final String host;
    private final int port;
    private @Nullable Bytes bytes;
    private @Nullable BothWays bothWays;

    /**
     * Connects when its first test is prepared, and for each size where both ends send.
     *
     * @param bootstrap with group and channel class
     * @param port where the server takes streams
     */
    PerfStream(Bootstrap bootstrap, String host, int port) {
        this.bootstrap = bootstrap;
        this.host = host;
        this.port = port;
    }

    @Override
    public Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes, PerfClient.Load load)
            throws InterruptedException {
        if (load.isBidirectional()) {
            close();
            BothWays to = new BothWays(connect(), bytes);
            to.channel.pipeline().addLast(to);
            bothWays = to;
            return to::send;
        }
        Bytes to = this.bytes == null ? begin(isLatency) : this.bytes;
        return isLatency ? () -> to.echo(bytes) : () -> to.send(bytes);
    }

    private Bytes begin(boolean isLatency) throws InterruptedException {
        Channel channel = connect();
        Bytes connected = new Bytes(channel);
        channel.pipeline().addLast(connected);
        channel.writeAndFlush(channel.alloc().buffer(1).writeByte(isLatency ? PerfProtocol.ECHO : PerfProtocol.COUNT))
                .sync();
        bytes = connected;
        return connected;
    }

    private Channel connect() throws InterruptedException {
        return bootstrap
                .clone()
                .handler(new ChannelInboundHandlerAdapter()) // the reader is added when its loop is known
                .connect(host, port)
                .sync()
                .channel();
    }

    private Channel channel() {
        if (bytes != null) {
            return bytes.channel;
        }
        return bothWays().channel;
    }

    private BothWays bothWays() {
        if (bothWays == null) {
            throw new IllegalStateException("no stream is connected");
        }
        return bothWays;
    }

    @Override
    public EventLoop loop() {
        return channel().eventLoop();
    }

    @Override
    public void beginReturn(int size, PerfClient.Load load) throws InterruptedException {
        Channel channel = channel();
        channel.writeAndFlush(channel.alloc()
                        .buffer(1 + 2 * Integer.BYTES)
                        .writeByte(PerfProtocol.BOTH)
                        .writeInt(size)
                        .writeInt(load.window()))
                .sync();
    }

    @Override
    public long received() {
        return bothWays().counter.counted();
    }

    @Override
    public long endReturn() throws InterruptedException {
        return bothWays().end().sent();
    }

    @Override
    public long arrived() throws InterruptedException {
        BothWays to = bothWays();
        return to.ended.isDone() ? to.ended.sync().getNow().counted() : 0;
    }

    @Override
    public void close() {
        if (bytes != null) {
            bytes.channel.close().awaitUninterruptibly();
            bytes = null;
        }
        if (bothWays != null) {
            bothWays.channel.close().awaitUninterruptibly();
            bothWays = null;
        }
    }

    /** The connected stream. Used on its event loop. */
    private static final class Bytes extends SimpleChannelInboundHandler<ByteBuf> {
        private final Channel channel;
        private final Echoes echoes;

        /** Bytes that have come back of an incomplete echo. */
        private long bytesBack;

        private int bytesOfAnEcho;

        Bytes(Channel channel) {
            this.channel = channel;
            echoes = new Echoes(channel.eventLoop());
        }

        ChannelFuture send(int bytes) {
            return channel.writeAndFlush(PerfConnection.filled(channel, bytes));
        }

        Future<?> echo(int bytes) {
            bytesOfAnEcho = bytes; // of all that are under way
            return echoes.expect(send(bytes));
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
            for (bytesBack += message.readableBytes(); bytesBack >= bytesOfAnEcho; bytesBack -= bytesOfAnEcho) {
                echoes.arrived();
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            echoes.fail("the server closed the stream");
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            echoes.fail(String.valueOf(cause.getMessage()));
            context.close();
        }
    }

    /**
     * The server's report at the end.
     *
     * @param counted messages that it has received
     * @param sent messages that it has sent
     */
    private record Ended(long counted, long sent) {}

    /** A stream on which both ends send messages of one size. Used on its event loop, {@link #end()} elsewhere. */
    private static final class BothWays extends SimpleChannelInboundHandler<ByteBuf> {
        private static final int ANSWER_BYTES = 2 * Long.BYTES;

        private final Channel channel;
        private final int bytes;
        private final StreamCounter counter;
        private final Promise<Ended> ended;
        private final ByteBuf answer = Unpooled.buffer(ANSWER_BYTES, ANSWER_BYTES);
        private boolean isLastCounted;

        BothWays(Channel channel, int bytes) {
            this.channel = channel;
            this.bytes = bytes;
            counter = new StreamCounter(bytes);
            ended = channel.eventLoop().newPromise();
        }

        ChannelFuture send() {
            return channel.writeAndFlush(PerfConnection.filled(channel, bytes).setByte(0, PerfProtocol.COUNT));
        }

        /** Sends the end mark, and waits until the server has sent its own. */
        Ended end() throws InterruptedException {
            channel.writeAndFlush(channel.alloc().buffer(1).writeByte(PerfProtocol.HOW_MANY))
                    .sync();
            return ended.sync().getNow();
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf arrived) {
            isLastCounted = isLastCounted || counter.take(arrived);
            if (isLastCounted && answer.isWritable()) {
                answer.writeBytes(arrived, Math.min(answer.writableBytes(), arrived.readableBytes()));
                if (!answer.isWritable()) {
                    ended.trySuccess(new Ended(answer.readLong(), answer.readLong()));
                }
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            ended.tryFailure(new CommandFailure("the server closed the stream"));
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            ended.tryFailure(new CommandFailure(String.valueOf(cause.getMessage())));
            context.close();
        }
    }
}
