package org.verbena.bench.soak;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.verbena.api.Exchange;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;

/**
 * The process that is killed and stopped: it sends back what it gets, now and then late, and gives each channel memory
 * of its own.
 */
final class SoakServer {
    static final String READY = "soak server at ports ";
    static final String DONE = "soak server done: ";
    static final int MEMORY_BYTES = 64 << 10;

    private SoakServer() {}

    /** Provider, host, port for messages and port for streams; 0 for any. Ends with its standard input. */
    public static void main(String[] arguments) throws Exception {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 2);
        RdmaServer messages = RdmaServer.builder()
                .group(group)
                .onConnect(SoakServer::giveMemory)
                .bind(arguments[1], Integer.parseInt(arguments[2]), SoakServer::answer);
        Channel streams = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerSocketChannel.class)
                .childHandler(new ChannelInitializer<RdmaSocketChannel>() {
                    @Override
                    protected void initChannel(RdmaSocketChannel accepted) {
                        accepted.pipeline().addLast(new Echo());
                    }
                })
                .bind(arguments[1], Integer.parseInt(arguments[3]))
                .sync()
                .channel();
        System.out.println(
                READY + messages.port() + " " + ((java.net.InetSocketAddress) streams.localAddress()).getPort());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (input.readLine() != null) {
            // nothing is ever written to it
        }
        messages.close();
        streams.close().sync();
        group.shutdownGracefully(0, 10, TimeUnit.SECONDS).sync();
        System.out.println(DONE + leaks(ProviderStatistics.of(group.provider())));
        Runtime.getRuntime().halt(0);
    }

    /** What was not given back; empty if there is nothing. */
    static String leaks(ProviderStatistics statistics) {
        String text = "";
        if (statistics.openConnections() != 0) {
            text += statistics.openConnections() + " connections are open; ";
        }
        if (statistics.sendBuffers().usedBytes() != 0) {
            text += statistics.sendBuffers().usedBytes() + " bytes of send buffers are out; ";
        }
        if (statistics.receiveBuffers().usedBytes() != 0) {
            text += statistics.receiveBuffers().usedBytes() + " bytes of receive buffers are out; ";
        }
        return text;
    }

    private static void giveMemory(RdmaChannel channel) {
        Arena arena = Arena.ofShared();
        RegisteredMemory memory = channel.memory()
                .register(
                        arena.allocate(MEMORY_BYTES, 8),
                        Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC));
        channel.attr(Soak.TOKEN).set(memory.remote().encode());
        channel.closeFuture().addListener(closed -> {
            memory.whenGone(arena::close);
            memory.close();
        });
    }

    private static void echo(Exchange exchange, ByteBuf message) {
        if (exchange.isRequest()) {
            exchange.reply(message);
        } else {
            exchange.send(message);
        }
    }

    private static void answer(Exchange exchange, ByteBuf message) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        if (exchange.isRequest() && message.readableBytes() == 0) {
            exchange.reply(exchange.channel().attr(Soak.TOKEN).get());
        } else if (exchange.isRequest() && random.nextInt(50) == 0) {
            // Kept for a while: the memory is the receive's own.
            ByteBuf kept = message.retain();
            exchange.channel()
                    .eventLoop()
                    .schedule(() -> exchange.reply(kept), random.nextInt(50), TimeUnit.MILLISECONDS);
        } else {
            echo(exchange, message.retain());
            if (random.nextInt(500) == 0) {
                pause(exchange.channel(), random.nextInt(100));
            }
        }
    }

    private static void pause(Channel channel, int millis) {
        channel.config().setAutoRead(false);
        channel.eventLoop().schedule(() -> channel.config().setAutoRead(true), millis, TimeUnit.MILLISECONDS);
    }

    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object bytes) {
            context.write(bytes);
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
            if (ThreadLocalRandom.current().nextInt(500) == 0) {
                pause(context.channel(), ThreadLocalRandom.current().nextInt(100));
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            context.close();
        }
    }
}
