package org.verbena.bench.stack;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.bench.EchoHandler;

/** Channels with one handler each: messages, or a stream whose messages have no frame but their length. */
@SuppressWarnings("NullAway.Init") // opened before anything else
final class ChannelLayer implements Layer {
    private final String provider;
    private final boolean isStream;
    private final Client client = new Client();

    ChannelLayer(String provider, boolean isStream) {
        this.provider = provider;
        this.isStream = isStream;
    }

    @Override
    public void open() throws Exception {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(isStream ? RdmaServerSocketChannel.class : RdmaServerChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.pipeline().addLast(new EchoHandler());
                    }
                })
                .bind(Place.host(provider), 0)
                .sync()
                .channel();
        new Bootstrap()
                .group(group)
                .channel(isStream ? RdmaSocketChannel.class : RdmaChannel.class)
                .handler(client)
                .connect(server.localAddress())
                .sync();
    }

    @Override
    public void start(Series series) {
        client.context.executor().execute(() -> client.begin(series));
    }

    private static final class Client extends ChannelInboundHandlerAdapter {
        private ChannelHandlerContext context;
        private @Nullable Series series;
        private int bytes;

        @Override
        public void handlerAdded(ChannelHandlerContext added) {
            context = added;
        }

        void begin(Series next) {
            series = next;
            next.begin();
            for (int i = 0; i < next.window; i++) {
                send();
            }
            context.flush();
        }

        private void send() {
            ByteBuf message = context.alloc().directBuffer(MESSAGE_BYTES);
            context.write(message.writerIndex(MESSAGE_BYTES), context.voidPromise());
        }

        @Override
        public void channelRead(ChannelHandlerContext reading, Object received) {
            ByteBuf message = (ByteBuf) received;
            bytes += message.readableBytes();
            message.release();
            while (bytes >= MESSAGE_BYTES) {
                bytes -= MESSAGE_BYTES;
                Series current = series;
                if (current != null && current.echoed()) {
                    send();
                }
            }
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext reading) {
            reading.flush();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext reading, Throwable cause) {
            Series current = series;
            if (current != null) {
                current.fail(cause);
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext reading) {
            exceptionCaught(reading, new IllegalStateException("the connection ended"));
        }
    }
}
