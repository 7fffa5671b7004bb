package org.verbena.it.steps;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoop;
import java.util.concurrent.Callable;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.RdmaServerChannel;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MessageClaims;

/**
 * Sends 64 bytes again and again, each time between two marks, until the process is ended; at first the loops only poll
 * and run tasks there. Its arguments are what to send, and the provider.
 */
final class Walk {
    private static final int BYTES = 64;

    /** So many are sent before: by then buffers, pools and windows are as they stay. */
    private static final int BEFORE = 300;

    /** Before the first message, the loops are without work between so many pairs of marks. */
    static final int IDLE = 4;

    /** Enough tasks of a loop for each step that it takes without work. */
    private static final int TASKS = 30;

    /** The loops always poll, so that none has to be woken. */
    private static final CompletionLoopOptions POLLING = new CompletionLoopOptions(TimeUnit.DAYS.toNanos(1), 256, 1024);

    private Walk() {}

    public static void main(String[] arguments) throws Exception {
        RdmaEventLoopGroup near = new RdmaEventLoopGroup(arguments[1], 1, POLLING);
        RdmaEventLoopGroup far = new RdmaEventLoopGroup(arguments[1], 1, POLLING);
        Callable<?> step = arguments[0].equals("request") ? request(near, far) : claim(near, far);
        for (int i = 0; i < BEFORE; i++) {
            step.call();
        }
        EventLoop nearLoop = near.next();
        EventLoop farLoop = far.next();
        settle(nearLoop, farLoop);
        for (int i = 0; i < IDLE; i++) {
            Mark.begin();
            for (int j = 0; j < TASKS; j++) {
                settle(nearLoop, farLoop);
            }
            Mark.end();
        }
        while (true) {
            Mark.begin();
            step.call();
            settle(nearLoop, farLoop);
            Mark.end();
        }
    }

    /** Whatever the loops were doing is over. */
    private static void settle(EventLoop near, EventLoop far) throws Exception {
        far.submit(() -> {}).get();
        near.submit(() -> {}).get();
    }

    private static Callable<?> request(RdmaEventLoopGroup near, RdmaEventLoopGroup far) {
        RdmaServer server = RdmaServer.builder()
                .group(far)
                .bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
        RdmaClient client = RdmaClient.builder().group(near).connect("127.0.0.1", server.port());
        byte[] message = new byte[BYTES];
        return () -> client.request(message).get();
    }

    /** One message one way: claimed, filled and committed on the loop, until the peer's pipeline has it. */
    private static Callable<?> claim(RdmaEventLoopGroup near, RdmaEventLoopGroup far) throws InterruptedException {
        SynchronousQueue<Integer> came = new SynchronousQueue<>();
        Channel server = new ServerBootstrap()
                .group(far)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.pipeline().addLast(new ChannelInboundHandlerAdapter() {
                            @Override
                            public void channelRead(ChannelHandlerContext context, Object message)
                                    throws InterruptedException {
                                ByteBuf bytes = (ByteBuf) message;
                                int length = bytes.readableBytes();
                                bytes.release();
                                came.put(length);
                            }
                        });
                    }
                })
                .bind("127.0.0.1", 0)
                .sync()
                .channel();
        RdmaChannel client = (RdmaChannel) new Bootstrap()
                .group(near)
                .channel(RdmaChannel.class)
                .handler(new ChannelInboundHandlerAdapter())
                .connect(server.localAddress())
                .sync()
                .channel();
        Runnable send = () -> {
            MessageClaims claims = client.claims();
            if (claims.tryClaim(BYTES) != MessageClaims.Outcome.CLAIMED) {
                throw new IllegalStateException("no room for a message");
            }
            claims.buffer().writeZero(BYTES);
            claims.commit();
            claims.flush();
        };
        return () -> {
            client.eventLoop().execute(send);
            return came.take();
        };
    }
}
