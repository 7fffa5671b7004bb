package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
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

/**
 * Another process: one end of connections, which sends without a pause until it is killed, or sends back what comes.
 */
final class ShmChild {
    private static final int MESSAGE_BYTES = 1000;

    /** A server's line with its port begins with it. */
    private static final String PORT = "port ";

    private ShmChild() {}

    /** So does its line with what its loop has done. */
    private static final String WORK = "work ";

    private static final String TICK = "tick";

    /**
     * Starts one: {@code client PORT CONNECTIONS}, or {@code server} or {@code echo}, which print their port. It ends
     * with this process.
     */
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
        BufferedReader output = server.inputReader();
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            if (line.startsWith(PORT)) {
                return Integer.parseInt(line.substring(PORT.length()));
            }
        }
        throw new IOException("the server has ended");
    }

    /** A quarter of its stall timeout passes for one, if wanted; returns what its loop has done. */
    static ShmIoHandler.Work work(Process child, boolean tick) throws IOException {
        BufferedWriter input = child.outputWriter();
        input.write(tick ? TICK : "");
        input.newLine();
        input.flush();
        String line = child.inputReader().readLine();
        if (line == null || !line.startsWith(WORK)) {
            throw new IOException("the other process says " + line);
        }
        String[] counts = line.substring(WORK.length()).split(" ");
        return new ShmIoHandler.Work(
                Long.parseLong(counts[0]),
                Long.parseLong(counts[1]),
                Long.parseLong(counts[2]),
                Long.parseLong(counts[3]));
    }

    public static void main(String... arguments) throws Exception {
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(Path.of(arguments[0])));
        IoHandlerFactory factory = provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS);
        ShmIoHandler[] io = new ShmIoHandler[1];
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, executor -> io[0] = (ShmIoHandler) factory.newHandler(executor));
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
            boolean echoes = arguments[1].equals("echo");
            RecordingListenerHandler listening = new RecordingListenerHandler(loop);
            listening.whenRequested(request -> {
                Endpoint unused = request.accept(
                        loop, EndpointOptions.DEFAULTS, echoes ? echo(loop, memory) : talker(loop, memory));
            });
            Listener listener =
                    provider.listen(loop, new InetSocketAddress(host, 0), ListenOptions.DEFAULTS, listening);
            System.out.println(PORT + listening.awaitListening().localAddress().getPort());
            assert listener != null;
        }
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            boolean tick = order.equals(TICK);
            ShmIoHandler.Work work = CompletableFuture.supplyAsync(
                            () -> {
                                if (tick) {
                                    io[0].passTick();
                                }
                                return io[0].work();
                            },
                            loop)
                    .get();
            System.out.println(WORK + work.socketPolls() + " " + work.sleeps() + " " + work.wakeUps() + " "
                    + work.endpointPolls());
        }
        Runtime.getRuntime().halt(0); // its parent has ended
    }

    /** Sends a message back for each that comes. */
    private static RecordingEndpointHandler echo(IoEventLoop loop, RegisteredMemory memory) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler("echo", loop);
        handler.whenPrepared(endpoint -> {
            for (int i = 0; i < 16; i++) {
                post(handler, endpoint, memory);
            }
        });
        handler.whenReceived((endpoint, completion) -> {
            post(handler, endpoint, memory);
            send(handler, endpoint, memory, 1, completion.lengthBytes());
        });
        return handler;
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
                send(handler, endpoint, memory, number.incrementAndGet(), MESSAGE_BYTES);
            }
            endpoint.flush();
        });
        handler.whenSent((endpoint, completion) -> {
            send(handler, endpoint, memory, number.incrementAndGet(), MESSAGE_BYTES);
            endpoint.flush();
        });
        return handler;
    }

    private static void post(RecordingEndpointHandler handler, Endpoint endpoint, RegisteredMemory memory) {
        ScatterGatherList buffers = new ScatterGatherList(1).addHeld(memory, 0, 4096);
        boolean unused = handler.postReceive(endpoint, 1, buffers);
    }

    private static void send(
            RecordingEndpointHandler handler, Endpoint endpoint, RegisteredMemory memory, int id, int bytes) {
        WorkRequest request = new WorkRequest(1).asSend(id, 0);
        request.buffers().addHeld(memory, 8192, bytes);
        boolean unused = handler.post(endpoint, request);
    }
}
