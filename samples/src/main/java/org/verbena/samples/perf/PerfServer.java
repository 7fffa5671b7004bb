package org.verbena.samples.perf;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.socket.SocketChannel;
import io.netty.util.ReferenceCountUtil;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.LoopOptions;
import org.verbena.samples.command.ServerSignals;
import org.verbena.samples.echo.EchoHandler;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** The passive end of all tests: messages, requests and memory on one port, streams on the next. */
@Command(
        name = "server",
        description = "Serves perf clients: streams on the port after --port, everything else on --port.",
        footer = "%nClients get memory to read and write, up to 1 GiB for each connection: for networks you trust.")
final class PerfServer implements Callable<Integer> {
    private static final int HIGHEST_PORT = 65535;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private LoopOptions loop;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        if (options.listenPort() == HIGHEST_PORT) {
            throw new CommandLine.ParameterException(
                    spec.commandLine(), "--port must be below " + HIGHEST_PORT + ": streams take the port after it");
        }
        ServerSignals.endWithZero();
        PerfProtocol protocol = new PerfProtocol();
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(options.provider, 0, loop.completionLoop());
                RdmaServer server =
                        RdmaServer.builder().group(group).bind(options.host, options.listenPort(), protocol::serve)) {
            int streamPort = options.listenPort() == 0 ? 0 : options.listenPort() + 1;
            Channel streams = new ServerBootstrap()
                    .group(group)
                    .channel(RdmaServerSocketChannel.class)
                    .childHandler(new ChannelInitializer<SocketChannel>() {
                        @Override
                        protected void initChannel(SocketChannel channel) {
                            channel.pipeline().addLast(new StreamMode());
                        }
                    })
                    .bind(options.host, streamPort)
                    .sync()
                    .channel();
            protocol.streamPort(((InetSocketAddress) streams.localAddress()).getPort());
            PrintWriter out = spec.commandLine().getOut();
            out.println("perf server listens on " + server.localAddress() + " (" + server.provider()
                    + "), for streams on " + streams.localAddress());
            out.flush();
            new CountDownLatch(1).await();
        }
        return CommandLine.ExitCode.OK;
    }

    /** Does with a stream what its first byte says, and is gone then. */
    private static final class StreamMode extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            boolean echoes = ((ByteBuf) message).readByte() == PerfProtocol.ECHO;
            context.pipeline().replace(this, null, echoes ? new EchoHandler() : new Dropping());
            context.fireChannelRead(message); // what follows the byte
        }
    }

    private static final class Dropping extends EchoHandler {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ReferenceCountUtil.release(message);
        }
    }
}
