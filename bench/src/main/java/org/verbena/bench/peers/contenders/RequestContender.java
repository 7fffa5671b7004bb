package org.verbena.bench.peers.contenders;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.nio.file.Path;
import java.util.List;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.client.Target;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;

/**
 * Requests and replies of {@link RdmaClient} and {@link RdmaServer}, the way {@link GrpcContender} makes unary calls: a
 * message is a request, both ends work in one event loop each, and each reply starts the next request there.
 */
public final class RequestContender implements Contender {
    private static final int MAX_MESSAGE = 17 << 20;
    private static final MessageHandler ECHO = (exchange, message) -> exchange.reply(message.retain());

    @Override
    public List<String> jvmFlags() {
        return new VerbenaContender(false).jvmFlags();
    }

    private static void answered(Calls calls, Future<ByteBuf> reply) {
        if (!reply.isSuccess()) {
            calls.failed(reply.cause());
            return;
        }
        ByteBuf echo = reply.getNow();
        try {
            calls.replied(echo.getLong(echo.readerIndex()), echo.readableBytes(), echo.getByte(echo.writerIndex() - 1));
        } finally {
            echo.release();
        }
        calls.next();
    }

    @Override
    public Server startServer(Path scratch) {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(Place.provider(), 1);
        RdmaServer server = RdmaServer.builder()
                .group(group)
                .option(RdmaChannelOption.MAX_MESSAGE_BYTES, MAX_MESSAGE)
                .option(RdmaChannelOption.SHARED_RECEIVE_QUEUE, Place.connections() > 1) // as a server of many
                .bind(Place.address(0).getHostString(), 0, ECHO);
        return new Server() {
            @Override
            public String address() {
                return Integer.toString(server.port());
            }

            @Override
            public void close() {
                server.close();
                group.shutdownGracefully();
            }
        };
    }

    @Override
    public Client connect(String address) {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(Place.provider(), 1);
        RdmaClient client = RdmaClient.builder()
                .group(group)
                .option(RdmaChannelOption.MAX_MESSAGE_BYTES, MAX_MESSAGE)
                .connections(Place.connections())
                .target(Target.of(Place.address(0).getHostString(), Integer.parseInt(address)))
                .connect();
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                new Calls(load, (calls, sequence) -> {
                            ByteBuf message = client.channel().alloc().directBuffer(load.size);
                            message.writeLong(sequence);
                            message.writeBytes(calls.payload(), Long.BYTES, load.size - Long.BYTES);
                            client.request(message).addListener((Future<ByteBuf> reply) -> answered(calls, reply));
                        })
                        .run();
            }

            @Override
            public void close() {
                client.close();
                group.shutdownGracefully();
            }
        };
    }
}
