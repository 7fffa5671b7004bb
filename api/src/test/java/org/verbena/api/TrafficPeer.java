package org.verbena.api;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ServerChannel;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.spi.Patience;

/** Another process that sends everything back: messages, streams and requests. To be killed or stopped. */
final class TrafficPeer {
    private static final String READY = "traffic peer at ports ";

    private final Process process;
    private final InetSocketAddress address;
    private final InetSocketAddress streamAddress;
    private final int requestPort;

    private TrafficPeer(Process process, InetSocketAddress address, InetSocketAddress streamAddress, int requestPort) {
        this.process = process;
        this.address = address;
        this.streamAddress = streamAddress;
        this.requestPort = requestPort;
    }

    /** Starts one and waits until it listens. */
    static TrafficPeer start(String provider, String host) throws IOException {
        Process process = java(List.of("-Xmx512m"), TrafficPeer.class, provider, host);
        BufferedReader output = process.inputReader();
        String line = output.readLine();
        while (line != null && !line.startsWith(READY)) {
            line = output.readLine();
        }
        if (line == null) {
            process.destroyForcibly();
            throw new AssertionError("the other process ended before it listened");
        }
        String[] ports = line.substring(READY.length()).split(" ");
        return new TrafficPeer(
                process,
                new InetSocketAddress(host, Integer.parseInt(ports[0])),
                new InetSocketAddress(host, Integer.parseInt(ports[1])),
                Integer.parseInt(ports[2]));
    }

    /** Another JVM like this one. */
    static Process java(List<String> flags, Class<?> main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            // The JVM's own, not what attaches something to this very process or writes its files.
            if (flag.startsWith("--")
                    || flag.startsWith("-Dio.netty.try")
                    || flag.contains("AOT")
                    || flag.startsWith("-XX:ArchiveRelocationMode")
                    || flag.equals("-XX:+UnlockDiagnosticVMOptions")
                    || flag.equals("-XX:+UseSerialGC")) {
                command.add(flag);
            }
        }
        command.addAll(flags);
        String programFlag = System.getProperty("verbena.test.programFlag");
        if (programFlag != null) {
            command.add(programFlag);
        }
        command.addAll(
                List.of("-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    /** Where it takes messages. */
    InetSocketAddress address() {
        return address;
    }

    /** Where it takes streams. */
    InetSocketAddress streamAddress() {
        return streamAddress;
    }

    /** Where it is a server for clients. */
    int requestPort() {
        return requestPort;
    }

    /** SIGSTOP: it is there and does nothing. */
    void stop() throws IOException, InterruptedException {
        Process kill = new ProcessBuilder("kill", "-STOP", String.valueOf(process.pid()))
                .inheritIO()
                .start();
        if (kill.waitFor() != 0) {
            throw new AssertionError("the process could not be stopped");
        }
    }

    /** SIGKILL, and waits until it is gone. */
    void kill() {
        process.destroyForcibly();
        try {
            if (!process.waitFor(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new AssertionError("the killed process goes on");
            }
            process.inputReader().close();
        } catch (InterruptedException | IOException e) {
            throw new AssertionError(e);
        }
    }

    /** The process. It ends when its parent does, too: then nobody reads its output. */
    public static void main(String... arguments) throws InterruptedException {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 2);
        int messages = listen(group, RdmaServerChannel.class, arguments[1]);
        int streams = listen(group, RdmaServerSocketChannel.class, arguments[1]);
        RdmaServer requests = RdmaServer.builder()
                .group(group)
                .bind(arguments[1], 0, (exchange, message) -> exchange.reply(message.retain()));
        System.out.println(READY + messages + " " + streams + " " + requests.port());
        ProcessHandle.current().parent().orElseThrow().onExit().join();
        Runtime.getRuntime().halt(0);
    }

    private static int listen(RdmaEventLoopGroup group, Class<? extends ServerChannel> type, String host)
            throws InterruptedException {
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(type)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 64)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel accepting) {
                        accepting.pipeline().addLast(new Echo());
                    }
                })
                .bind(host, 0)
                .sync()
                .channel();
        return ((InetSocketAddress) server.localAddress()).getPort();
    }

    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.writeAndFlush(((ByteBuf) message));
        }

        @Override
        public void channelWritabilityChanged(ChannelHandlerContext context) {
            context.channel().config().setAutoRead(context.channel().isWritable());
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            context.close();
        }
    }
}
