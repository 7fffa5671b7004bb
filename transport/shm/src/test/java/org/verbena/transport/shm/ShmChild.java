package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** Another process: one end of connections, which sends without a pause until it is killed. */
final class ShmChild {
    private static final int MESSAGE_BYTES = 1000;

    /** A server's line with its port begins with it. */
    private static final String PORT = "port ";

    private ShmChild() {}

    /** Starts one: {@code client PORT CONNECTIONS} or {@code server}, which prints its port. */
    static Process start(Path directory, String... arguments) throws IOException {
        return start(List.of(), directory, arguments);
    }

    /** As {@link #start(Path, String...)}, by a program that starts it. */
    static Process start(List<String> starter, Path directory, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(starter);
        command.addAll(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-Xmx64m",
                "-cp",
                System.getProperty("java.class.path"),
                ShmChild.class.getName(),
                directory.toString()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    /** The port of a server that was started. */
    static int awaitPort(Process server) throws IOException {
        try (BufferedReader output = server.inputReader()) {
            return output.lines()
                    .filter(line -> line.startsWith(PORT))
                    .mapToInt(line -> Integer.parseInt(line.substring(PORT.length())))
                    .findFirst()
                    .orElseThrow(() -> new IOException("the server has ended"));
        }
    }

    public static void main(String... arguments) throws InterruptedException {
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(Path.of(arguments[0])));
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        IoEventLoop loop = group.next();
        Arena arena = Arena.global();
        RegisteredMemory memory = provider.memoryDomain()
                .register(
                        provider.memoryDomain().allocate(arena, 1 << 20, Set.of()),
                        Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ));
        InetAddress host = InetAddress.getLoopbackAddress();
        if (arguments[1].equals("client")) {
            InetSocketAddress server = new InetSocketAddress(host, Integer.parseInt(arguments[2]));
            for (int i = 0; i < Integer.parseInt(arguments[3]); i++) {
                Endpoint unused = provider.connect(loop, server, EndpointOptions.DEFAULTS, talker(loop, memory));
            }
        } else {
            RecordingListenerHandler listening = new RecordingListenerHandler(loop);
            listening.whenRequested(request -> {
                Endpoint unused = request.accept(loop, EndpointOptions.DEFAULTS, talker(loop, memory));
            });
            Listener listener =
                    provider.listen(loop, new InetSocketAddress(host, 0), ListenOptions.DEFAULTS, listening);
            System.out.println(PORT + listening.awaitListening().localAddress().getPort());
            assert listener != null;
        }
        Thread.sleep(Long.MAX_VALUE);
    }

    /** Sends a message for each that was sent, and takes what comes. */
    private static RecordingEndpointHandler talker(IoEventLoop loop, RegisteredMemory memory) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler("child", loop);
        AtomicInteger number = new AtomicInteger();
        handler.whenPrepared(endpoint -> {
            for (int i = 0; i < 64; i++) {
                post(handler, endpoint, memory);
            }
        });
        handler.whenReceived((endpoint, completion) -> post(handler, endpoint, memory));
        handler.whenConnected(endpoint -> {
            for (int i = 0; i < 32; i++) {
                send(handler, endpoint, memory, number.incrementAndGet());
            }
            endpoint.flush();
        });
        handler.whenSent((endpoint, completion) -> {
            send(handler, endpoint, memory, number.incrementAndGet());
            endpoint.flush();
        });
        return handler;
    }

    private static void post(RecordingEndpointHandler handler, Endpoint endpoint, RegisteredMemory memory) {
        ScatterGatherList buffers = new ScatterGatherList(1).addHeld(memory, 0, 4096);
        boolean unused = handler.postReceive(endpoint, 1, buffers);
    }

    private static void send(RecordingEndpointHandler handler, Endpoint endpoint, RegisteredMemory memory, int id) {
        WorkRequest request = new WorkRequest(1).asSend(id, 0);
        request.buffers().addHeld(memory, 8192, MESSAGE_BYTES);
        boolean unused = handler.post(endpoint, request);
    }
}
