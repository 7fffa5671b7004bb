package org.verbena.reactor;

import io.netty.channel.Channel;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.socket.ServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.time.Duration;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.NonBlocking;
import reactor.netty.resources.LoopResources;

/**
 * Event loops and channels over RDMA for Reactor Netty: {@code HttpServer}, {@code HttpClient}, {@code TcpServer} and
 * {@code TcpClient} that run on them use {@link RdmaSocketChannel} and {@link RdmaServerSocketChannel}; nothing else
 * changes. Both ends must use Verbena, unless clients connect by a ladder.
 *
 * <pre>{@code
 * LoopResources loops = new RdmaLoopResources("web");
 * DisposableServer server = HttpServer.create().runOn(loops).port(7471).handle(handler).bindNow();
 * HttpClient client = HttpClient.create().runOn(loops);
 * }</pre>
 *
 * <p>A {@code UdpServer}, {@code UdpClient} or name resolver that runs on them uses Netty's NIO channels, which the
 * provider's loops must support. Names are resolved on Reactor Netty's own loops by default. A program's preference for
 * Netty's native transports has no effect here.
 *
 * <p>Any thread. The loops' threads are {@link NonBlocking}: {@code block()} on one of them fails.
 */
public final class RdmaLoopResources implements LoopResources {
    private final RdmaEventLoopGroup loops;

    /** The same loops; a client that is used on one of them connects on that one. */
    private final EventLoopGroup clientLoops;

    private final AtomicBoolean disposed = new AtomicBoolean();

    /**
     * Makes as many loops as Reactor Netty makes by default, of the configured provider ({@code
     * -Dorg.verbena.provider}), on daemon threads.
     *
     * @param prefix what their threads' names begin with
     * @throws org.verbena.transport.ProviderUnavailableException the provider cannot work here
     */
    public RdmaLoopResources(String prefix) {
        this(
                prefix,
                ProviderSet.choose(ProviderChoice.configured(), null),
                DEFAULT_IO_WORKER_COUNT,
                true,
                CompletionLoopOptions.DEFAULTS);
    }

    /**
     * Makes loops of a provider.
     *
     * @param prefix what their threads' names begin with
     * @param choice the provider
     * @param threads how many loops; 0 for Netty's default
     * @param daemon whether the process may end while they run
     * @param options how the loops poll and block
     */
    public RdmaLoopResources(
            String prefix, ProviderChoice choice, int threads, boolean daemon, CompletionLoopOptions options) {
        this(prefix, ProviderSet.of(choice), threads, daemon, options);
    }

    /**
     * Makes loops of several providers: servers listen with all of them, and clients connect by a ladder if the set was
     * chosen as {@link ProviderSet#LADDER}.
     *
     * @param prefix what their threads' names begin with
     * @param providers already chosen
     * @param threads how many loops of each; 0 for Netty's default
     * @param daemon whether the process may end while they run
     * @param options how the loops poll and block
     */
    public RdmaLoopResources(
            String prefix, ProviderSet providers, int threads, boolean daemon, CompletionLoopOptions options) {
        this(new RdmaEventLoopGroup(providers, threads, new LoopThreadFactory(prefix, daemon), options));
    }

    /**
     * Makes loops whose clients connect by a ladder. A single client may have options of its own: {@link
     * org.verbena.api.RdmaChannelOption#LADDER}.
     *
     * @param prefix what their threads' names begin with
     * @param ladder what clients try, when, and what they need
     * @param threads how many loops of each rung; 0 for Netty's default
     * @param daemon whether the process may end while they run
     * @param options how the loops poll and block
     */
    public RdmaLoopResources(
            String prefix, LadderOptions ladder, int threads, boolean daemon, CompletionLoopOptions options) {
        this(new RdmaEventLoopGroup(ladder, threads, new LoopThreadFactory(prefix, daemon), options));
    }

    private RdmaLoopResources(RdmaEventLoopGroup loops) {
        this.loops = loops;
        clientLoops = LoopResources.colocate(loops);
    }

    /**
     * Returns the loops, for their provider and its statistics.
     *
     * @return the loops; {@link #dispose()} ends them
     */
    public RdmaEventLoopGroup loops() {
        return loops;
    }

    @Override
    public EventLoopGroup onServer(boolean useNative) {
        return loops;
    }

    @Override
    public EventLoopGroup onClient(boolean useNative) {
        return clientLoops;
    }

    @Override
    public <C extends Channel> C onChannel(Class<C> channelType, EventLoopGroup group) {
        if (channelType.equals(SocketChannel.class)) {
            return channelType.cast(loops.newSocketChannel());
        }
        if (channelType.equals(ServerSocketChannel.class)) {
            return channelType.cast(new RdmaServerSocketChannel());
        }
        return LoopResources.super.onChannel(channelType, group);
    }

    @Override
    public <C extends Channel> Class<? extends C> onChannelClass(Class<C> channelType, EventLoopGroup group) {
        if (channelType.equals(SocketChannel.class)) {
            return loops.socketChannelClass().asSubclass(channelType);
        }
        if (channelType.equals(ServerSocketChannel.class)) {
            return RdmaServerSocketChannel.class.asSubclass(channelType);
        }
        return LoopResources.super.onChannelClass(channelType, group);
    }

    /**
     * Closes the channels that are open on these loops and ends the loops, once subscribed to. Dispose of servers and
     * clients first, for an orderly end.
     *
     * @param quietPeriod how long no task must have been submitted, once the channels are closed
     * @param timeout how long all of it may take, the quiet period included
     * @return completes when the loops have ended
     */
    @Override
    public Mono<Void> disposeLater(Duration quietPeriod, Duration timeout) {
        return Mono.create(sink -> {
            if (disposed.compareAndSet(false, true)) {
                clientLoops.shutdownGracefully(quietPeriod.toMillis(), timeout.toMillis(), TimeUnit.MILLISECONDS);
            }
            loops.terminationFuture().addListener(ended -> sink.success());
        });
    }

    @Override
    public boolean isDisposed() {
        return disposed.get();
    }

    /** Makes threads as Reactor Netty's own loops have them. */
    private static final class LoopThreadFactory implements ThreadFactory {
        private final String prefix;
        private final boolean daemon;
        private final AtomicInteger made = new AtomicInteger();

        LoopThreadFactory(String prefix, boolean daemon) {
            this.prefix = prefix;
            this.daemon = daemon;
        }

        @Override
        public Thread newThread(Runnable task) {
            Thread thread = new LoopThread(task, prefix + "-rdma-" + made.incrementAndGet());
            thread.setDaemon(daemon);
            return thread;
        }
    }

    private static final class LoopThread extends FastThreadLocalThread implements NonBlocking {
        LoopThread(Runnable task, String name) {
            super(task, name);
        }
    }
}
