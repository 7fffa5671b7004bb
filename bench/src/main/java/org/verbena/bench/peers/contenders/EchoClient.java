package org.verbena.bench.peers.contenders;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;

/**
 * The client of contenders on Netty's channels. It works in its event loop, where Netty is fastest: an echo is answered
 * with the next message there, with no hand-over to another thread. That message goes over the connection whose turn it
 * is, and all that were written to are flushed when a batch of reads is complete.
 */
@SuppressWarnings("NullAway") // the load is there while messages are
final class EchoClient implements Contender.Client {
    private final EventLoopGroup group;
    private final int lengthBytes;
    private final List<Connection> connections = new ArrayList<>();
    private final ArrayList<Connection> written = new ArrayList<>();
    private int turn;
    private Load load;
    private CompletableFuture<Void> done;

    private EchoClient(EventLoopGroup group, int lengthBytes) {
        this.group = group;
        this.lengthBytes = lengthBytes;
    }

    /**
     * Connects, as often as {@link Place#connections} says.
     *
     * @param group of one loop; closed with the client
     * @param lengthBytes 4 if a message begins with its length and keeps it, else 0
     * @param setUp prepares a channel and adds the handler to its pipeline
     */
    static EchoClient connect(
            EventLoopGroup group,
            Class<? extends Channel> type,
            SocketAddress address,
            int lengthBytes,
            BiConsumer<Channel, ChannelInboundHandlerAdapter> setUp)
            throws InterruptedException {
        EchoClient client = new EchoClient(group, lengthBytes);
        Bootstrap bootstrap = new Bootstrap().group(group).channel(type).handler(new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel channel) {
                setUp.accept(channel, client.new Connection());
            }
        });
        for (int i = Place.connections(); i > 0; i--) {
            bootstrap.connect(address).sync();
        }
        return client;
    }

    @Override
    public void run(Load next) throws Exception {
        CompletableFuture<Void> whenDone = new CompletableFuture<>();
        group.next().execute(() -> {
            load = next;
            done = whenDone;
            send();
            flush();
        });
        whenDone.get();
    }

    @Override
    public void close() {
        group.shutdownGracefully();
    }

    private void send() {
        for (long sequence; (sequence = load.next()) >= 0; ) {
            if (++turn >= connections.size()) {
                turn = 0;
            }
            connections.get(turn).write(sequence);
        }
    }

    private void flush() {
        for (int i = 0; i < written.size(); i++) {
            Connection connection = written.get(i);
            connection.isWritten = false;
            connection.context.flush();
        }
        written.clear();
    }

    private void fail(Throwable cause) {
        if (done != null) {
            done.completeExceptionally(cause);
        }
    }

    private final class Connection extends ChannelInboundHandlerAdapter {
        private ChannelHandlerContext context;
        private boolean isWritten;

        @Override
        public void channelActive(ChannelHandlerContext active) {
            context = active;
            connections.add(this);
        }

        private void write(long sequence) {
            ByteBuf message = context.alloc().directBuffer(lengthBytes + load.size);
            if (lengthBytes > 0) {
                message.writeInt(load.size);
            }
            message.writeLong(sequence).writeBytes(load.payload, 8, load.size - 8);
            context.write(message, context.voidPromise());
            if (!isWritten) {
                isWritten = true;
                written.add(this);
            }
        }

        @Override
        public void channelRead(ChannelHandlerContext reading, Object received) {
            ByteBuf message = (ByteBuf) received;
            try {
                load.echoed(
                        message.getLong(message.readerIndex() + lengthBytes),
                        message.readableBytes() - lengthBytes,
                        message.getByte(message.writerIndex() - 1));
            } finally {
                message.release();
            }
            send();
            if (load.finished()) {
                done.complete(null);
            }
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext reading) {
            flush();
        }

        @Override
        public void channelInactive(ChannelHandlerContext inactive) {
            fail(new IllegalStateException("connection closed"));
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext failed, Throwable cause) {
            fail(cause);
        }
    }
}
