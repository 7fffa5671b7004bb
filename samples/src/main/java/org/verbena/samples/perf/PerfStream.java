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
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A stream whose bytes the server sends back, or drops. */
final class PerfStream implements PerfSubject {
    private final Bootstrap bootstrap;
    private final String host;
    private final int port;
    private @Nullable Bytes bytes;

    /**
     * Connects when its first test is prepared.
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
        Bytes to = this.bytes == null ? connect(isLatency) : this.bytes;
        return isLatency ? () -> to.echo(bytes) : () -> to.send(bytes);
    }

    private Bytes connect(boolean isLatency) throws InterruptedException {
        Channel channel = bootstrap
                .clone()
                .handler(new ChannelInboundHandlerAdapter()) // the reader comes when its loop is known
                .connect(host, port)
                .sync()
                .channel();
        Bytes connected = new Bytes(channel);
        channel.pipeline().addLast(connected);
        channel.writeAndFlush(channel.alloc().buffer(1).writeByte(isLatency ? PerfProtocol.ECHO : PerfProtocol.COUNT))
                .sync();
        bytes = connected;
        return connected;
    }

    @Override
    public EventLoop loop() {
        if (bytes == null) {
            throw new IllegalStateException("no stream is connected");
        }
        return bytes.channel.eventLoop();
    }

    @Override
    public void close() {
        if (bytes != null) {
            bytes.channel.close().awaitUninterruptibly();
        }
    }

    /** The connected stream. Used on its event loop. */
    private static final class Bytes extends SimpleChannelInboundHandler<ByteBuf> {
        private final Channel channel;
        private final Echoes echoes;

        /** What has come back of an echo that is not complete. */
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
}
