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
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.spi.RemoteMemory;

/** One of the connections of a client, and a stream beside it when streams are measured. */
final class PerfConnection implements AutoCloseable {
    private final RdmaClient client;
    private final Echoes messages;
    private @Nullable Stream stream;

    PerfConnection(RdmaEventLoopGroup group, String host, int port) throws InterruptedException {
        client = RdmaClient.builder()
                .group(group)
                .onMessage((exchange, message) -> echoed())
                .connect(host, port);
        messages = new Echoes(client.channel().eventLoop());
        client.channel().closeFuture().addListener(closed -> messages.fail("the server closed the connection"));
        counted(); // fails if it is another server
    }

    /** Connects the stream, which the server takes on a port of its own. */
    void connectStream(RdmaEventLoopGroup group, String host, boolean isLatency) throws InterruptedException {
        if (stream != null) {
            stream.channel.close().sync();
        }
        ByteBuf reply = request(PerfProtocol.STREAM_PORT, 0);
        int port = reply.readInt();
        reply.release();
        Channel channel = new Bootstrap()
                .group(group)
                .channel(RdmaSocketChannel.class)
                .handler(new ChannelInboundHandlerAdapter()) // the reader comes when its loop is known
                .connect(host, port)
                .sync()
                .channel();
        Stream connected = new Stream(channel);
        channel.pipeline().addLast(connected);
        channel.writeAndFlush(channel.alloc().buffer(1).writeByte(isLatency ? PerfProtocol.ECHO : PerfProtocol.COUNT))
                .sync();
        stream = connected;
    }

    RdmaClient client() {
        return client;
    }

    /** The loop on which {@link #operation} is to be started. */
    EventLoop loop(PerfTest test) {
        return test == PerfTest.STREAM
                ? stream().channel.eventLoop()
                : client.channel().eventLoop();
    }

    /** What is measured: each call starts one. */
    Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes) throws InterruptedException {
        RdmaChannel channel = client.channel();
        return switch (test) {
            case MESSAGE ->
                isLatency
                        ? () -> messages.expect(client.send(message(PerfProtocol.ECHO, bytes)))
                        : () -> client.send(message(PerfProtocol.COUNT, bytes));
            case REQUEST ->
                () -> client.request(message(PerfProtocol.ECHO, bytes)).addListener(PerfConnection::release);
            case STREAM -> {
                Stream to = stream();
                yield isLatency ? () -> to.echo(bytes) : () -> to.send(bytes);
            }
            case READ -> {
                RemoteMemory memory = memory(bytes);
                yield () -> {
                    ByteBuf into = channel.alloc().buffer(bytes, bytes);
                    Future<Void> read = channel.read(memory, 0, into);
                    into.release(); // the operation holds it
                    return read;
                };
            }
            case WRITE -> {
                RemoteMemory memory = memory(bytes);
                yield () -> {
                    ByteBuf from = filled(channel, bytes);
                    Future<Void> write = channel.write(memory, 0, from);
                    from.release(); // the operation holds it
                    return write;
                };
            }
            case ATOMIC -> {
                if (!channel.capabilities().atomics()) {
                    throw new UnsupportedOperationException(client.provider() + " has no atomics here");
                }
                RemoteMemory memory = memory(Long.BYTES);
                yield () -> channel.fetchAndAdd(memory, 0, 1);
            }
        };
    }

    /** How many messages the server has counted on this connection. */
    long counted() throws InterruptedException {
        ByteBuf reply = request(PerfProtocol.HOW_MANY, 0);
        try {
            if (reply.readableBytes() != Long.BYTES) {
                throw new CommandFailure("the server's reply is not what a perf server says; is it one?");
            }
            return reply.readLong();
        } finally {
            reply.release();
        }
    }

    private RemoteMemory memory(int bytes) throws InterruptedException {
        return PerfProtocol.token(request(PerfProtocol.MEMORY, bytes));
    }

    private ByteBuf request(byte what, int argument) throws InterruptedException {
        return client.request(client.channel()
                        .alloc()
                        .buffer(1 + Integer.BYTES)
                        .writeByte(what)
                        .writeInt(argument))
                .sync()
                .getNow();
    }

    private ByteBuf message(byte what, int bytes) {
        return filled(client.channel(), bytes).setByte(0, what);
    }

    private static ByteBuf filled(Channel channel, int bytes) {
        return channel.alloc().buffer(bytes, bytes).writerIndex(bytes);
    }

    private static void release(Future<? super ByteBuf> replied) {
        if (replied.isSuccess() && replied.getNow() instanceof ByteBuf reply) {
            reply.release();
        }
    }

    private Stream stream() {
        if (stream == null) {
            throw new IllegalStateException("no stream is connected");
        }
        return stream;
    }

    private void echoed() {
        messages.arrived();
    }

    @Override
    public void close() {
        if (stream != null) {
            stream.channel.close().awaitUninterruptibly();
        }
        client.close();
    }

    /** What was sent and has not come back yet, in order. Used on one event loop. */
    private static final class Echoes {
        private final EventLoop loop;
        private final ArrayDeque<Promise<Boolean>> awaited = new ArrayDeque<>();

        Echoes(EventLoop loop) {
            this.loop = loop;
        }

        /** Completes when what is sent has come back. */
        Future<?> expect(Future<?> sent) {
            Promise<Boolean> back = loop.newPromise();
            awaited.add(back);
            sent.addListener(done -> {
                if (!done.isSuccess()) {
                    back.tryFailure(done.cause());
                }
            });
            return back;
        }

        void arrived() {
            Promise<Boolean> back = awaited.poll();
            if (back != null) {
                back.trySuccess(true);
            }
        }

        void fail(String why) {
            for (Promise<Boolean> back = awaited.poll(); back != null; back = awaited.poll()) {
                back.tryFailure(new CommandFailure(why));
            }
        }
    }

    /** A stream whose bytes the server sends back, or drops. Used on its event loop. */
    private static final class Stream extends SimpleChannelInboundHandler<ByteBuf> {
        private final Channel channel;
        private final Echoes echoes;
        private long bytesAwaited;

        Stream(Channel channel) {
            this.channel = channel;
            echoes = new Echoes(channel.eventLoop());
        }

        ChannelFuture send(int bytes) {
            return channel.writeAndFlush(filled(channel, bytes));
        }

        Future<?> echo(int bytes) {
            bytesAwaited += bytes;
            return echoes.expect(send(bytes));
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
            bytesAwaited -= message.readableBytes();
            if (bytesAwaited == 0) {
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
