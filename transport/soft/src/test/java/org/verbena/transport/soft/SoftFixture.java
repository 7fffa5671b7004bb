package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoEventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SingleThreadIoEventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.soft.uring.RingLoop;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;

/**
 * A provider with one loop and one listener that accepts every connection. Closing it checks that nothing is left over.
 */
final class SoftFixture implements AutoCloseable {
    final SoftProvider provider;
    final Arena arena = Arena.ofShared();
    final IoEventLoop loop;
    final InetSocketAddress address;
    final RecordingListenerHandler listening;
    private final MultiThreadIoEventLoopGroup group;
    private volatile SoftIoHandler io;
    private final Listener listener;
    private final List<RecordingEndpointHandler> handlers = new CopyOnWriteArrayList<>();
    private final BlockingQueue<RecordingEndpointHandler> accepted = new LinkedBlockingQueue<>();
    private final List<RegisteredMemory> regions = new CopyOnWriteArrayList<>();
    private final AtomicReference<@Nullable Error> scheduleError = new AtomicReference<>();

    SoftFixture(SoftOptions options) {
        this(options, EndpointOptions.DEFAULTS);
    }

    SoftFixture(SoftOptions options, EndpointOptions endpointOptions) {
        provider = new SoftProvider(options);
        IoHandlerFactory factory = provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS);
        group =
                new MultiThreadIoEventLoopGroup(1, executor -> {
                    io = (SoftIoHandler) factory.newHandler(executor);
                    return io;
                }) {
                    @Override
                    protected IoEventLoop newChild(Executor executor, IoHandlerFactory handlers, Object... arguments) {
                        return new Loop(this, executor, handlers);
                    }
                };
        loop = group.next();
        listening = new RecordingListenerHandler(loop);
        listening.whenRequested(connection -> {
            RecordingEndpointHandler handler = handler("server of " + connection.remoteAddress());
            connection.accept(loop, endpointOptions, handler);
            accepted.add(handler);
        });
        listener = provider.listen(
                loop, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), ListenOptions.DEFAULTS, listening);
        address = listening.awaitListening().localAddress();
    }

    RecordingEndpointHandler handler(String name) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler(name, loop);
        handlers.add(handler);
        return handler;
    }

    /** The accepting side of the connection that came next. */
    RecordingEndpointHandler awaitAccepted() {
        return Patience.take("an accepted connection", accepted);
    }

    RecordingEndpointHandler connect(EndpointOptions options) {
        return connect(address, options);
    }

    RecordingEndpointHandler connect(InetSocketAddress to, EndpointOptions options) {
        RecordingEndpointHandler handler = handler("client");
        Endpoint unused = provider.connect(loop, to, options, handler);
        return handler;
    }

    RegisteredMemory region(long bytes, MemoryDomain.Access... access) {
        RegisteredMemory region = provider.memoryDomain().register(arena.allocate(bytes, 8), Set.of(access));
        regions.add(region);
        return region;
    }

    /** What the loop throws when it is next to schedule something, as it does when a class cannot be loaded. */
    void throwAtNextSchedule(Error error) {
        scheduleError.set(error);
    }

    /** The ring of the loop; null if it has none. */
    @Nullable RingLoop ring() {
        return io.ring();
    }

    /** A quarter of the stall timeout passes. */
    void tick() {
        Patience.await("a tick", loop.submit(() -> io.passTick()));
    }

    /** Time passes until the connection has ended. */
    Throwable awaitGivenUp(RecordingEndpointHandler victim) {
        Patience.until("the connection is given up", () -> {
            tick();
            return victim.isDisconnected();
        });
        return victim.awaitDisconnected();
    }

    /** For the peer of this connection alone. */
    RegisteredMemory ownRegion(RecordingEndpointHandler owner, long bytes, MemoryDomain.Access... access) {
        RegisteredMemory region =
                owner.awaitPrepared().connectionMemory().register(arena.allocate(bytes, 8), Set.of(access));
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
        Patience.await("the event loop ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
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

    private final class Loop extends SingleThreadIoEventLoop {
        Loop(IoEventLoopGroup parent, Executor executor, IoHandlerFactory handlers) {
            super(parent, executor, handlers);
        }

        @Override
        public ScheduledFuture<?> schedule(Runnable task, long delay, TimeUnit unit) {
            Error error = scheduleError.getAndSet(null);
            if (error != null) {
                throw error;
            }
            return super.schedule(task, delay, unit);
        }
    }
}
