package org.verbena.bench.echo;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.bench.EchoHandler;

/**
 * What an echoed message allocates on the heap, both ends together, in one JVM: through Verbena's Channel API on the
 * software provider, and through Netty's TCP channel with the same handlers, which shows what Netty's pipeline takes by
 * itself.
 *
 * <p>One operation is one message sent, echoed by the server's handler and received, one after another;
 * {@code gc.alloc.rate.norm} is what it allocated.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
@SuppressWarnings("NullAway.Init") // JMH calls open before anything else
public class EchoAllocation {
    private static final int ECHOES = 1000;

    /** What carries the messages. */
    @Param({"verbena-soft", "netty-nio"})
    public String transport;

    /** Bytes of a message. */
    @Param({"64", "4096", "16000"})
    public int size;

    private EventLoopGroup serverLoop;
    private EventLoopGroup clientLoop;
    private Channel client;
    private final Client handler = new Client();

    /** Connects. */
    @Setup
    public void open() {
        boolean rdma = transport.equals("verbena-soft");
        serverLoop = newLoop(rdma);
        clientLoop = newLoop(rdma);
        Class<? extends ServerChannel> serverClass = rdma ? RdmaServerChannel.class : NioServerSocketChannel.class;
        Class<? extends Channel> clientClass = rdma ? RdmaChannel.class : NioSocketChannel.class;
        InetAddress host = InetAddress.getLoopbackAddress();
        Channel server = new ServerBootstrap()
                .group(serverLoop)
                .channel(serverClass)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.pipeline().addLast(new EchoHandler());
                    }
                })
                .bind(new InetSocketAddress(host, 0))
                .syncUninterruptibly()
                .channel();
        client = new Bootstrap()
                .group(clientLoop)
                .channel(clientClass)
                .handler(handler)
                .connect(new InetSocketAddress(host, ((InetSocketAddress) server.localAddress()).getPort()))
                .syncUninterruptibly()
                .channel();
    }

    private static EventLoopGroup newLoop(boolean rdma) {
        return rdma ? new RdmaEventLoopGroup("soft", 1) : new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    }

    /** Disconnects. */
    @TearDown
    public void close() {
        client.close().syncUninterruptibly();
        clientLoop.shutdownGracefully(0, 1, TimeUnit.SECONDS).syncUninterruptibly();
        serverLoop.shutdownGracefully(0, 1, TimeUnit.SECONDS).syncUninterruptibly();
    }

    /**
     * Messages there and back.
     *
     * @throws InterruptedException never
     */
    @Benchmark
    @OperationsPerInvocation(ECHOES)
    public void echo() throws InterruptedException {
        client.eventLoop().execute(handler);
        handler.done.acquire();
    }

    /** On its loop; {@link #run()} begins a series. */
    private final class Client extends ChannelInboundHandlerAdapter implements Runnable {
        private final Semaphore done = new Semaphore(0);
        private ChannelHandlerContext context;
        private int echoesLeft;
        private int bytesLeft;

        @Override
        public void handlerAdded(ChannelHandlerContext added) {
            context = added;
        }

        @Override
        public void run() {
            echoesLeft = ECHOES;
            send();
        }

        private void send() {
            bytesLeft = size;
            ByteBuf message = context.alloc().directBuffer(size);
            context.writeAndFlush(message.writerIndex(size), context.voidPromise());
        }

        @Override
        public void channelRead(ChannelHandlerContext reading, Object message) {
            ByteBuf echo = (ByteBuf) message;
            bytesLeft -= echo.readableBytes(); // TCP may give a message in pieces
            echo.release();
            if (bytesLeft == 0) {
                if (--echoesLeft == 0) {
                    done.release();
                } else {
                    send();
                }
            }
        }
    }

    /**
     * Runs it with the profiler that counts allocations.
     *
     * @param args JMH's options
     * @throws RunnerException it failed
     * @throws CommandLineOptionException the options are wrong
     */
    public static void main(String[] args) throws RunnerException, CommandLineOptionException {
        new Runner(new OptionsBuilder()
                        .parent(new CommandLineOptions(args))
                        .include(EchoAllocation.class.getName())
                        .addProfiler(GCProfiler.class)
                        .build())
                .run();
    }
}
