package org.verbena.api;

import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ProviderChoice;
import org.verbena.transport.spi.CompletionLoopOptions;
import org.verbena.transport.spi.RdmaProvider;

/**
 * Event loops of one RDMA provider: what {@code NioEventLoopGroup} is to sockets. Each loop owns the completion queues
 * of its channels, so completions, promises, handlers and user callbacks of a channel all run on one thread.
 *
 * <p>Netty's NIO channels, such as {@code NioSocketChannel} and {@code NioDatagramChannel}, may use the loops as well,
 * so that a program needs one group for RDMA, TCP and UDP.
 *
 * <p>The provider is {@code auto} (verbs if a device is up, else soft), {@code verbs} or {@code soft}. The default is
 * what the system property {@value ProviderChoice#PROPERTY} says. The choice is logged once, at INFO. If a provider is
 * named and cannot work, the constructor throws {@link org.verbena.transport.ProviderUnavailableException}; it never
 * falls back to another.
 */
public final class RdmaEventLoopGroup extends MultiThreadIoEventLoopGroup {
    /** Long enough for CLOSE frames in flight. */
    private static final long CLOSE_MILLIS = 5_000;

    private final RdmaProvider provider;
    private final long transferBudgetBytes;
    private final String reason;

    /** Makes loops of the configured provider, as many as Netty makes by default: two for each processor. */
    public RdmaEventLoopGroup() {
        this(0);
    }

    /**
     * Makes loops of the configured provider.
     *
     * @param threads how many; 0 for Netty's default
     */
    public RdmaEventLoopGroup(int threads) {
        this(ProviderChoice.configured(), threads, CompletionLoopOptions.DEFAULTS);
    }

    /**
     * Makes loops of a provider.
     *
     * @param providerName {@code auto}, {@code verbs}, {@code soft}
     * @param threads how many; 0 for Netty's default
     * @throws org.verbena.transport.ProviderUnavailableException it cannot work here
     */
    public RdmaEventLoopGroup(String providerName, int threads) {
        this(providerName, threads, CompletionLoopOptions.DEFAULTS);
    }

    /**
     * Makes loops of a provider, with options.
     *
     * @param providerName {@code auto}, {@code verbs}, {@code soft}
     * @param threads how many; 0 for Netty's default
     * @param options how the loops poll and block
     * @throws org.verbena.transport.ProviderUnavailableException it cannot work here
     */
    public RdmaEventLoopGroup(String providerName, int threads, CompletionLoopOptions options) {
        this(ProviderChoice.choose(providerName, null), threads, null, options);
    }

    /**
     * Makes loops of a provider that was chosen before, for instance for an address.
     *
     * @param choice the provider
     * @param threads how many; 0 for Netty's default
     * @param threadFactory makes their threads; null for threads named after the provider
     * @param options how the loops poll and block
     */
    public RdmaEventLoopGroup(
            ProviderChoice choice, int threads, @Nullable ThreadFactory threadFactory, CompletionLoopOptions options) {
        super(
                threads,
                threadFactory == null
                        ? new DefaultThreadFactory(
                                "verbena-" + choice.provider().name())
                        : threadFactory,
                choice.provider().newIoHandlerFactory(options));
        provider = choice.provider();
        reason = choice.reason();
        transferBudgetBytes = options.transferBudgetBytes();
    }

    long transferBudgetBytes() {
        return transferBudgetBytes;
    }

    /**
     * Returns the provider of all loops of this group.
     *
     * @return the provider
     */
    public RdmaProvider provider() {
        return provider;
    }

    /**
     * Returns the counters of all channels of this group's provider, those of other groups included.
     *
     * @return a snapshot, weakly consistent: values may lag slightly, and not all by the same amount
     */
    public ProviderStatistics providerStatistics() {
        return ProviderStatistics.of(provider);
    }

    /**
     * Closes all channels of these loops in good order, ends the loops, and waits until that is done; called on one of
     * its own loops it does not wait. Channels that are not closed after 5 s are cut off. {@link #shutdownGracefully()}
     * does the same without waiting. Idempotent.
     */
    @Override
    public void close() {
        Future<?> ended = shutdownGracefully(0, CLOSE_MILLIS, TimeUnit.MILLISECONDS);
        for (EventExecutor loop : this) {
            if (loop.inEventLoop()) {
                return;
            }
        }
        ended.awaitUninterruptibly();
    }

    @Override
    public boolean isShuttingDown() {
        for (EventExecutor loop : this) {
            if (!((RdmaEventLoop) loop).isEnding()) {
                return false;
            }
        }
        return true;
    }

    @Override
    protected IoEventLoop newChild(Executor executor, IoHandlerFactory ioHandlerFactory, Object... arguments) {
        return new RdmaEventLoop(this, executor, ioHandlerFactory);
    }

    /** Why the provider of a loop was chosen. */
    static String reasonOf(EventLoop loop) {
        return loop.parent() instanceof RdmaEventLoopGroup group ? group.reason : "";
    }

    /** The provider of a loop, or null if the loop is not of such a group. */
    static @Nullable RdmaProvider providerOf(EventLoop loop) {
        return loop.parent() instanceof RdmaEventLoopGroup group ? group.provider : null;
    }
}
