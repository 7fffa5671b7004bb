package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;

/** A provider with a loop for each side and a listener. Closing it checks that nothing is left over. */
final class ShmFixture implements AutoCloseable {
    final ShmProvider provider;
    final Arena arena = Arena.ofShared();
    final InetSocketAddress address;
    private final Map<IoEventLoop, ShmIoHandler> loops = new ConcurrentHashMap<>();
    final MultiThreadIoEventLoopGroup group;
    private final IoEventLoop clientLoop;
    private final IoEventLoop serverLoop;
    private final RecordingListenerHandler listening;
    private final Listener listener;
    private final List<RecordingEndpointHandler> handlers = new CopyOnWriteArrayList<>();
    private final List<RegisteredMemory> regions = new CopyOnWriteArrayList<>();

    ShmFixture(ShmOptions options) {
        provider = new ShmProvider(options);
        IoHandlerFactory factory = provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS);
        group = new MultiThreadIoEventLoopGroup(2, loop -> {
            ShmIoHandler io = (ShmIoHandler) factory.newHandler(loop);
            loops.put((IoEventLoop) loop, io);
            return io;
        });
        clientLoop = group.next();
        serverLoop = group.next();
        listening = new RecordingListenerHandler(serverLoop);
        listener = provider.listen(
                serverLoop,
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                ListenOptions.DEFAULTS,
                listening);
        address = listening.awaitListening().localAddress();
    }

    /** Both ends of one connection. */
    record Pair(RecordingEndpointHandler client, RecordingEndpointHandler server) {}

    /** What a loop has done so far; to ask wakes it. */
    ShmIoHandler.Work work(IoEventLoop loop) {
        return onLoop(loop, ShmIoHandler::work);
    }

    /** Runs something on a loop, with its handler. */
    <T> T onLoop(IoEventLoop loop, Function<ShmIoHandler, T> action) {
        ShmIoHandler io = loops.get(loop);
        return Patience.await("a task of the loop", CompletableFuture.supplyAsync(() -> action.apply(io), loop));
    }

    /**
     * Waits until a loop blocks, and nothing but the questions, the timer and the tick wakes it. It may spin each time
     * before it sleeps: for how long depends on how quickly it was asked again.
     */
    void awaitIdle(IoEventLoop loop) {
        Patience.until("the loop blocks", () -> {
            ShmIoHandler.Work before = work(loop);
            Patience.timer(loop, Duration.ofMillis(100));
            long sleeps = work(loop).sleeps() - before.sleeps();
            return sleeps >= 1 && sleeps <= 3;
        });
    }

    IoEventLoop clientLoop() {
        return clientLoop;
    }

    IoEventLoop serverLoop() {
        return serverLoop;
    }

    /** A quarter of the stall timeout passes, on each loop. */
    void tick() {
        loops.forEach((loop, io) -> Patience.await("a tick", CompletableFuture.runAsync(io::passTick, loop)));
    }

    RecordingEndpointHandler handler(String name, IoEventLoop loop) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler(name, loop);
        handlers.add(handler);
        return handler;
    }

    Pair connect() {
        RecordingEndpointHandler client = handler("client", clientLoop);
        Endpoint unused = provider.connect(clientLoop, address, EndpointOptions.DEFAULTS, client);
        RecordingEndpointHandler server = accept();
        client.awaitConnected();
        return new Pair(client, server);
    }

    /** Connects to another server. */
    RecordingEndpointHandler connect(InetSocketAddress to, Consumer<RecordingEndpointHandler> prepare) {
        RecordingEndpointHandler client = handler("client", clientLoop);
        prepare.accept(client);
        Endpoint unused = provider.connect(clientLoop, to, EndpointOptions.DEFAULTS, client);
        return client;
    }

    RecordingEndpointHandler accept() {
        return accept(handler -> {});
    }

    RecordingEndpointHandler accept(Consumer<RecordingEndpointHandler> prepare) {
        RecordingEndpointHandler server = handler("server", serverLoop);
        prepare.accept(server);
        listening.awaitRequest().accept(serverLoop, EndpointOptions.DEFAULTS, server);
        server.awaitConnected();
        return server;
    }

    /** Accepts a connection that cannot come up; gives why not. */
    Throwable acceptInVain() {
        RecordingEndpointHandler server = handler("server", serverLoop);
        listening.awaitRequest().accept(serverLoop, EndpointOptions.DEFAULTS, server);
        return server.awaitDisconnected();
    }

    /** Memory that a peer of this process can map, as that of pools. */
    RegisteredMemory shared(MemoryDomain domain, long bytes, MemoryDomain.Access... access) {
        RegisteredMemory region =
                domain.register(provider.memoryDomain().allocate(arena, bytes, Set.of(access)), Set.of(access));
        regions.add(region);
        return region;
    }

    RegisteredMemory region(long bytes, MemoryDomain.Access... access) {
        RegisteredMemory region = provider.memoryDomain().register(arena.allocate(bytes, 8), Set.of(access));
        regions.add(region);
        return region;
    }

    void closeListener() {
        listener.close();
        listening.awaitClosed();
    }

    @Override
    public void close() {
        closeListener();
        Patience.await("the event loops ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
        for (RecordingEndpointHandler handler : handlers) {
            handler.awaitDisconnected();
            handler.assertNoViolations();
        }
        listening.assertNoViolations();
        regions.forEach(RegisteredMemory::close);
        if (provider.memoryDomain().registeredBytes() != 0) {
            throw new AssertionError(provider.memoryDomain().registeredBytes() + " bytes are still registered");
        }
        arena.close();
    }
}
