package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.spi.Patience;

/** What goes over the wire besides the messages themselves, and how much memory they go through. */
@Timeout(240)
public abstract class FramesPerMessageSuite {
    private static final int MESSAGE_BYTES = 64;
    private static final double MAX_FRAMES = 1.1;
    private static final int TOGETHER = 64;
    /** Receives are posted again a few at a time, and the first ones before there was any other. */
    private static final int MAX_PLACES = 6;

    private static final double MAX_FRAMES_TOGETHER = 0.2;

    /** Which provider. */
    protected abstract String provider();

    /** Each channel sends a request when it has the reply to the one before. */
    @ParameterizedTest
    @CsvSource({"1, 1000, false", "100, 30, true", "100, 30, false", "1000, 5, true", "300, 10, false"})
    void requestsAndRepliesAreNearlyAllOfTheFrames(int channels, int rounds, boolean shared) throws Exception {
        Queue<Channel> accepted = new ConcurrentLinkedQueue<>();
        Echo echo = new Echo(accepted);
        Requests requests = new Requests(rounds);
        List<Channel> connected = new ArrayList<>();
        try (RdmaEventLoopGroup servers = new RdmaEventLoopGroup(provider(), 1);
                RdmaEventLoopGroup clients = new RdmaEventLoopGroup(provider(), 1)) {
            Channel server = new ServerBootstrap()
                    .group(servers)
                    .channel(RdmaServerChannel.class)
                    .childOption(RdmaChannelOption.SHARED_RECEIVE_QUEUE, shared)
                    .childHandler(echo)
                    .bind("127.0.0.1", 0)
                    .sync()
                    .channel();
            Bootstrap bootstrap = new Bootstrap()
                    .group(clients)
                    .channel(RdmaChannel.class)
                    .option(RdmaChannelOption.SHARED_RECEIVE_QUEUE, shared)
                    .handler(requests);
            for (int i = 0; i < channels; i++) {
                connected.add(bootstrap
                        .connect("127.0.0.1", ((InetSocketAddress) server.localAddress()).getPort())
                        .sync()
                        .channel());
            }
            Patience.until("all are accepted", () -> accepted.size() == channels);
            long framesBefore = frames(connected, accepted);
            connected.forEach(Requests::send);
            Patience.until("all replies", () -> requests.replies.get() == (long) channels * rounds);
            long messages = 2L * channels * rounds;
            long frames = frames(connected, accepted) - framesBefore;
            System.out.printf(
                    "%s, %d channels%s: %.3f frames a message%n",
                    provider(), channels, shared ? " that share receives" : "", (double) frames / messages);
            assertThat(frames).isBetween(messages, (long) (MAX_FRAMES * messages));
        }
    }

    /** A channel to a server that echoes. */
    private static Channel connect(
            RdmaEventLoopGroup servers, RdmaEventLoopGroup clients, Queue<Channel> accepted, ChannelHandler handler)
            throws InterruptedException {
        Channel server = new ServerBootstrap()
                .group(servers)
                .channel(RdmaServerChannel.class)
                .childHandler(new Echo(accepted))
                .bind("127.0.0.1", 0)
                .sync()
                .channel();
        return new Bootstrap()
                .group(clients)
                .channel(RdmaChannel.class)
                .handler(handler)
                .connect(server.localAddress())
                .sync()
                .channel();
    }

    /** What is flushed together goes together, and so do the replies, which one turn of the echo's loop makes. */
    @Test
    void messagesThatAreFlushedTogetherShareFrames() throws Exception {
        int rounds = 100;
        Queue<Channel> accepted = new ConcurrentLinkedQueue<>();
        Bursts bursts = new Bursts(rounds);
        try (RdmaEventLoopGroup servers = new RdmaEventLoopGroup(provider(), 1);
                RdmaEventLoopGroup clients = new RdmaEventLoopGroup(provider(), 1)) {
            Channel channel = connect(servers, clients, accepted, bursts);
            Patience.until("it is accepted", () -> accepted.size() == 1);
            long framesBefore = frames(List.of(channel), accepted);
            channel.eventLoop().execute(() -> Bursts.send(channel));
            Patience.until("all replies", () -> bursts.replies.get() == (long) TOGETHER * rounds);
            long messages = 2L * TOGETHER * rounds;
            long frames = frames(List.of(channel), accepted) - framesBefore;
            System.out.printf(
                    "%s, %d messages flushed together: %.3f frames a message%n",
                    provider(), TOGETHER, (double) frames / messages);
            assertThat(frames).isBetween(2L * rounds, (long) (MAX_FRAMES_TOGETHER * messages));
        }
    }

    /** As threads outside the loop do: while messages are under way, those of the tasks that are queued go together. */
    @Test
    void messagesThatTasksFlushOneByOneShareFrames() throws Exception {
        int messages = 1000;
        Queue<Channel> accepted = new ConcurrentLinkedQueue<>();
        Requests requests = new Requests(0);
        try (RdmaEventLoopGroup servers = new RdmaEventLoopGroup(provider(), 1);
                RdmaEventLoopGroup clients = new RdmaEventLoopGroup(provider(), 1)) {
            Channel channel = connect(servers, clients, accepted, requests);
            List<Channel> sender = List.of(channel);
            long framesBefore = frames(sender, List.of());
            channel.eventLoop().execute(() -> {
                for (int i = 0; i < messages; i++) {
                    channel.eventLoop().execute(() -> Requests.send(channel));
                }
            });
            Patience.until("all replies", () -> requests.replies.get() == messages);
            long frames = frames(sender, List.of()) - framesBefore;
            System.out.printf(
                    "%s, %d messages flushed one by one: %.3f frames a message%n",
                    provider(), messages, (double) frames / messages);
            assertThat(frames).isBetween(1L, (long) (MAX_FRAMES_TOGETHER * messages));
        }
    }

    /** So the processor's caches have it: the receive that was posted last takes the next message. */
    @Test
    void messagesOneAtATimeComeInTheSameMemory() throws Exception {
        int rounds = 300;
        Queue<Channel> accepted = new ConcurrentLinkedQueue<>();
        Requests requests = new Requests(rounds);
        try (RdmaEventLoopGroup servers = new RdmaEventLoopGroup(provider(), 1);
                RdmaEventLoopGroup clients = new RdmaEventLoopGroup(provider(), 1)) {
            Channel channel = connect(servers, clients, accepted, requests);
            channel.eventLoop().execute(() -> Requests.send(channel));
            Patience.until("all replies", () -> requests.replies.get() == rounds);
            System.out.printf("%s, one at a time: %d receives%n", provider(), requests.places.size());
            assertThat(requests.places).hasSizeLessThanOrEqualTo(MAX_PLACES);
        }
    }

    private static long frames(Iterable<Channel> connected, Iterable<Channel> accepted) {
        long frames = 0;
        for (Iterable<Channel> side : List.of(connected, accepted)) {
            for (Channel channel : side) {
                MessageStatistics statistics = ((RdmaChannel) channel).statistics();
                frames += statistics.framesSent();
            }
        }
        return frames;
    }

    @ChannelHandler.Sharable
    private static final class Requests extends ChannelInboundHandlerAdapter {
        private final int rounds;
        final AtomicLong replies = new AtomicLong();
        /** Where replies were received. */
        final Set<Long> places = ConcurrentHashMap.newKeySet();

        Requests(int rounds) {
            this.rounds = rounds;
        }

        static void send(Channel channel) {
            ByteBuf request = channel.alloc().buffer(MESSAGE_BYTES, MESSAGE_BYTES);
            channel.writeAndFlush(request.writeZero(MESSAGE_BYTES));
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            places.add(((ByteBuf) message).memoryAddress());
            ((ByteBuf) message).release();
            replies.incrementAndGet();
            if (((RdmaChannel) context.channel()).statistics().messagesReceived() < rounds) {
                send(context.channel());
            }
        }
    }

    /** Flushes at the end of what came together. */
    @ChannelHandler.Sharable
    private static final class Echo extends ChannelInboundHandlerAdapter {
        private final Queue<Channel> accepted;

        Echo(Queue<Channel> accepted) {
            this.accepted = accepted;
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            accepted.add(context.channel());
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.write(message);
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }
    }

    private static final class Bursts extends ChannelInboundHandlerAdapter {
        private final int rounds;
        final AtomicLong replies = new AtomicLong();

        Bursts(int rounds) {
            this.rounds = rounds;
        }

        static void send(Channel channel) {
            for (int i = 0; i < TOGETHER; i++) {
                channel.write(
                        channel.alloc().buffer(MESSAGE_BYTES, MESSAGE_BYTES).writeZero(MESSAGE_BYTES));
            }
            channel.flush();
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ((ByteBuf) message).release();
            long count = replies.incrementAndGet();
            if (count % TOGETHER == 0 && count < (long) TOGETHER * rounds) {
                send(context.channel());
            }
        }
    }
}
