package org.verbena.tools;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.DuplexChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.PortNumber;
import org.verbena.samples.command.ServerSignals;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** Carries each connection of a stream on to a TCP server, such as a database, which does not speak RDMA. */
@Command(
        name = "relay",
        description = "Carries connections of streams, such as those of RdmaSocketFactory, on to a TCP server. On"
                + " SIGINT and SIGTERM it takes no more, waits for those that are open, and ends.")
public final class Relay implements Callable<Integer> {
    private static final Logger LOG = LoggerFactory.getLogger(Relay.class);

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Option(
            names = "--listen",
            paramLabel = "PORT",
            converter = PortNumber.class,
            description = "The port to listen on, as --port; 0 for any free one.")
    private @Nullable Integer listen;

    @Option(
            names = "--to",
            paramLabel = "HOST:PORT",
            required = true,
            description = "The TCP server. Its name is looked up for each connection.")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private String to;

    @Option(
            names = "--drain",
            paramLabel = "SECONDS",
            defaultValue = "10",
            description = "How long open connections may take to end when the relay is stopped (${DEFAULT-VALUE}).")
    private int drainSeconds;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    /** The connections of clients. */
    private final ChannelGroup clients = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE, true);

    @Override
    public Integer call() throws InterruptedException {
        InetSocketAddress target = target();
        DefaultThreadFactory threads = new DefaultThreadFactory("relay", true);
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(
                ProviderChoice.choose(options.provider, null), 0, threads, CompletionLoopOptions.DEFAULTS)) {
            EventLoopGroup tcp = new MultiThreadIoEventLoopGroup(0, threads, NioIoHandler.newFactory());
            Channel server = new ServerBootstrap()
                    .group(loops)
                    .channel(RdmaServerSocketChannel.class)
                    .childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
                    .childOption(ChannelOption.AUTO_READ, false)
                    .childHandler(new ChannelInitializer<>() {
                        @Override
                        protected void initChannel(Channel client) {
                            client.pipeline().addLast(new ChannelInboundHandlerAdapter() {
                                // Not before: its handshake may take longer than the connection to the server.
                                @Override
                                public void channelActive(ChannelHandlerContext established) {
                                    clients.add(client);
                                    carryOn((DuplexChannel) client, tcp, target);
                                }
                            });
                        }
                    })
                    .bind(options.host, listen == null ? options.listenPort() : listen)
                    .sync()
                    .channel();
            ServerSignals.endWithZero(() -> {
                server.close().awaitUninterruptibly(drainSeconds, TimeUnit.SECONDS);
                clients.newCloseFuture().awaitUninterruptibly(drainSeconds, TimeUnit.SECONDS);
            });
            PrintWriter out = spec.commandLine().getOut();
            out.println("relay listens on " + server.localAddress() + " ("
                    + loops.provider().name() + "), and connects to " + to);
            out.flush();
            server.closeFuture().sync();
            clients.newCloseFuture().sync();
        }
        return CommandLine.ExitCode.OK;
    }

    private InetSocketAddress target() {
        int colon = to.lastIndexOf(':');
        try {
            int port = new PortNumber().convert(to.substring(colon + 1));
            String host = to.substring(0, Math.max(0, colon)).replaceAll("^\\[|]$", "");
            if (port > 0 && !host.isEmpty()) {
                return InetSocketAddress.createUnresolved(host, port);
            }
        } catch (CommandLine.TypeConversionException malformed) {
            LOG.debug("--to {}", to, malformed);
        }
        throw new ParameterException(spec.commandLine(), "--to must be HOST:PORT, not '" + to + "'");
    }

    private static void carryOn(DuplexChannel client, EventLoopGroup tcp, InetSocketAddress target) {
        Bootstrap bootstrap = new Bootstrap()
                .group(tcp)
                .channel(NioSocketChannel.class)
                .option(ChannelOption.ALLOW_HALF_CLOSURE, true)
                .option(ChannelOption.AUTO_READ, false)
                .option(ChannelOption.TCP_NODELAY, true)
                .handler(new ChannelInboundHandlerAdapter());
        ChannelFutureListener onward = connected -> {
            if (!connected.isSuccess()) {
                LOG.warn("{} is not carried on: {}", client, String.valueOf(connected.cause()));
                client.close();
                return;
            }
            DuplexChannel server = (DuplexChannel) connected.channel();
            // Each in its own loop: a handler that comes after the end of its channel gets no event of it.
            client.eventLoop().execute(() -> Onward.begin(client, server));
            server.eventLoop().execute(() -> Onward.begin(server, client));
        };
        bootstrap.connect(target).addListener(onward);
    }

    /** What one end of a connection sends goes to the other, as fast as that takes it. */
    static final class Onward extends ChannelInboundHandlerAdapter {
        private final Channel to;

        Onward(Channel to) {
            this.to = to;
        }

        private static void begin(DuplexChannel from, Channel to) {
            from.pipeline().addLast(new Onward(to));
            if (from.isActive()) {
                from.config().setAutoRead(true);
            } else {
                to.close();
            }
        }

        @Override
        public void channelRead(ChannelHandlerContext from, Object message) {
            to.write(message).addListener(ChannelFutureListener.CLOSE_ON_FAILURE);
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext from) {
            to.flush();
        }

        /** What the other end may send follows what this one takes. */
        @Override
        public void channelWritabilityChanged(ChannelHandlerContext from) {
            to.config().setAutoRead(from.channel().isWritable());
        }

        @Override
        public void userEventTriggered(ChannelHandlerContext from, Object event) {
            if (event instanceof ChannelInputShutdownEvent) {
                afterLast(() -> ((DuplexChannel) to).shutdownOutput().addListener(shut -> {
                    if (isOver((DuplexChannel) from.channel()) && isOver((DuplexChannel) to)) {
                        from.close();
                        to.close();
                    }
                }));
            }
        }

        private static boolean isOver(DuplexChannel channel) {
            return channel.isInputShutdown() && channel.isOutputShutdown();
        }

        @Override
        public void channelInactive(ChannelHandlerContext from) {
            afterLast(to::close);
        }

        private void afterLast(Runnable then) {
            to.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(sent -> then.run());
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext from, Throwable cause) {
            LOG.debug("{} is lost", from.channel(), cause);
            from.close();
        }
    }
}
