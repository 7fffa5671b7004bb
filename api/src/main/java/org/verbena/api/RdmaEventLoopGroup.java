package org.verbena.api;

import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.FutureListener;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.netty.util.concurrent.Promise;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.ladder.LadderMemory;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.RdmaProvider;

/**
 * Event loops of one RDMA provider: what {@code NioEventLoopGroup} is to sockets. Each loop owns the completion queues
 * of its channels, so completions, promises, handlers and user callbacks of a channel all run on one thread.
 *
 * <p>Netty's NIO channels, such as {@code NioSocketChannel} and {@code NioDatagramChannel}, may use the loops as well,
 * so that a program needs one group for RDMA, TCP and UDP.
 *
 * <p>The provider is {@code auto} (verbs if a device is up, else soft), {@code verbs} or {@code soft}. The default is
 * the value of the system property {@value ProviderChoice#PROPERTY}. The choice is logged once, at INFO. If a named
 * provider cannot work, the constructor throws {@link org.verbena.transport.ProviderUnavailableException}; it never
 * falls back to another.
 *
 * <p>A server may listen with several providers, on one address and port: {@code verbs+soft}, or {@code all} for every
 * provider that can serve; see {@link ProviderSet}. The group then has loops of each, and clients may connect by a
 * ladder of them: see {@link RdmaLadder}, and {@link LadderSocketChannel} for libraries. Clients on a group that is
 * made with {@code ladder} or with {@link LadderOptions} connect by a ladder unless they choose otherwise.
 */
public final class RdmaEventLoopGroup extends MultiThreadIoEventLoopGroup {
    /** Long enough for CLOSE frames in flight. */
    private static final long CLOSE_MILLIS = 5_000;

    private final LoopGroup common;
    private final @Nullable LadderOptions ladder;
    private final LadderMemory ladderMemory;

    /** Loops of the other providers of a server; their threads start when they are first used. */
    private final List<RdmaEventLoopGroup> companions;

    /** All loops have ended, those of the companions included. */
    private final Promise<Void> allEnded = new DefaultPromise<>(GlobalEventExecutor.INSTANCE);

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
     * @param providerName {@code auto}, {@code verbs}, {@code soft}, or several as {@link ProviderSet} describes
     * @param threads how many; 0 for Netty's default
     * @throws org.verbena.transport.ProviderUnavailableException it cannot work here
     */
    public RdmaEventLoopGroup(String providerName, int threads) {
        this(providerName, threads, CompletionLoopOptions.DEFAULTS);
    }

    /**
     * Makes loops of a provider, with options.
     *
     * @param providerName {@code auto}, {@code verbs}, {@code soft}, or several as {@link ProviderSet} describes
     * @param threads how many; 0 for Netty's default
     * @param options how the loops poll and block
     * @throws org.verbena.transport.ProviderUnavailableException it cannot work here
     */
    public RdmaEventLoopGroup(String providerName, int threads, CompletionLoopOptions options) {
        this(ProviderSet.choose(providerName, null), threads, null, options);
    }

    /**
     * Makes loops of a provider that the program has itself, such as one for tests.
     *
     * @param provider can work here
     * @param threads how many; 0 for Netty's default
     */
    public RdmaEventLoopGroup(RdmaProvider provider, int threads) {
        this(new ProviderChoice(provider, "the program has it"), threads, null, CompletionLoopOptions.DEFAULTS);
    }

    /**
     * Makes loops of a provider that has already been chosen, for instance for an address.
     *
     * @param choice the provider
     * @param threads how many; 0 for Netty's default
     * @param threadFactory makes their threads; null for threads named after the provider
     * @param options how the loops poll and block
     */
    public RdmaEventLoopGroup(
            ProviderChoice choice, int threads, @Nullable ThreadFactory threadFactory, CompletionLoopOptions options) {
        this(ProviderSet.of(choice), threads, threadFactory, options);
    }

    /**
     * Makes loops of several providers, for servers that listen with all of them. The group's own loops, which {@link
     * #next()} returns and clients use, belong to the first; a connection that a server accepts through another
     * provider gets a loop of that provider.
     *
     * @param providers already chosen, for instance for an address
     * @param threads how many for each provider; 0 for Netty's default. Those that nothing uses are not started
     * @param threadFactory makes their threads; null for threads named after the provider
     * @param options how the loops poll and block
     */
    public RdmaEventLoopGroup(
            ProviderSet providers, int threads, @Nullable ThreadFactory threadFactory, CompletionLoopOptions options) {
        this(providers, threads, threadFactory, options, providers.isLadder() ? LadderOptions.DEFAULTS : null);
    }

    /**
     * Makes loops for clients that connect by a ladder, of all its rungs that could work here; {@link #ladder()}
     * returns the ladder.
     *
     * @param ladder what clients try, when, and what they need
     * @param threads how many for each provider; 0 for Netty's default. Those that nothing uses are not started
     * @param threadFactory makes their threads; null for threads named after the first provider
     * @param options how the loops poll and block
     * @throws org.verbena.transport.ProviderUnavailableException no rung can work here
     */
    public RdmaEventLoopGroup(
            LadderOptions ladder, int threads, @Nullable ThreadFactory threadFactory, CompletionLoopOptions options) {
        this(RdmaLadder.providersOf(ladder), threads, threadFactory, options, ladder);
    }

    private RdmaEventLoopGroup(
            ProviderSet providers,
            int threads,
            @Nullable ThreadFactory threadFactory,
            CompletionLoopOptions options,
            @Nullable LadderOptions ladder) {
        this(new LoopGroup(providers, options.transferBudgetBytes()), threads, threadFactory, options, ladder);
    }

    private RdmaEventLoopGroup(
            LoopGroup common,
            int threads,
            @Nullable ThreadFactory threadFactory,
            CompletionLoopOptions options,
            @Nullable LadderOptions ladder) {
        super(
                threads,
                threadFactory == null
                        ? new DefaultThreadFactory(
                                "verbena-" + common.provider().name())
                        : threadFactory,
                common.provider().newIoHandlerFactory(options),
                common);
        this.common = common;
        this.ladder = ladder;
        LoopClock clock = common.clock();
        // What a ladder remembers ages by a clock: loops with a test's clock share nothing with others.
        ladderMemory = clock.isSystem() ? LadderMemory.OF_PROCESS : new LadderMemory(clock);
        ProviderSet providers = common.providers();
        List<RdmaEventLoopGroup> others = new ArrayList<>();
        try {
            for (ProviderChoice other :
                    providers.choices().subList(1, providers.choices().size())) {
                others.add(new RdmaEventLoopGroup(other, threads, threadFactory, options));
            }
        } catch (RuntimeException failure) {
            others.forEach(made -> made.shutdownGracefully(0, 0, TimeUnit.SECONDS));
            super.shutdownGracefully(0, 0, TimeUnit.SECONDS);
            throw failure;
        }
        companions = List.copyOf(others);
        common.begin(this, others.stream().map(other -> other.common).toList());
        AtomicInteger running = new AtomicInteger(1 + companions.size());
        FutureListener<Object> ended = group -> {
            if (running.decrementAndGet() == 0) {
                allEnded.trySuccess(null);
            }
        };
        super.terminationFuture().addListener(ended);
        companions.forEach(companion -> companion.terminationFuture().addListener(ended));
    }

    /** The clock of these loops, and of the clients and servers on them. */
    LoopClock clock() {
        return common.clock();
    }

    /** What the ladders of these loops know of addresses. */
    LadderMemory ladderMemory() {
        return ladderMemory;
    }

    /** The providers that servers on these loops listen with. */
    ProviderSet providers() {
        return common.providers();
    }

    /**
     * Returns the provider of this group's own loops: with several providers the first, which clients use.
     *
     * @return the provider
     */
    public RdmaProvider provider() {
        return common.provider();
    }

    /**
     * Returns how clients on these loops connect by a ladder, unless their program chooses otherwise: the options that
     * the loops were made with, or the default ones if they were made with the name {@code ladder}.
     *
     * @return null if clients use the first provider
     */
    public @Nullable LadderOptions ladder() {
        return ladder;
    }

    /**
     * Returns the class of a client's channel of bytes for these loops, for libraries that ask for a class.
     *
     * @return {@link LadderSocketChannel} if there is a {@link #ladder()}, else {@link RdmaSocketChannel}
     */
    public Class<? extends SocketChannel> socketChannelClass() {
        return ladder == null ? RdmaSocketChannel.class : LadderSocketChannel.class;
    }

    /**
     * Makes a channel of {@link #socketChannelClass()}.
     *
     * @return not registered, not connected
     */
    public SocketChannel newSocketChannel() {
        return ladder == null ? new RdmaSocketChannel() : new LadderSocketChannel();
    }

    /**
     * Returns the counters of all channels of this group's provider, those of other groups included.
     *
     * @return a snapshot, weakly consistent: values may lag slightly, and not all by the same amount
     */
    public ProviderStatistics providerStatistics() {
        return ProviderStatistics.of(provider());
    }

    /**
     * Closes all channels of these loops in good order, ends the loops, and waits until that is done; called on an
     * event loop, of this or another group, it does not wait. Channels that are not closed after 5 s are cut off.
     * {@link #shutdownGracefully()} does the same without waiting. Idempotent.
     */
    @Override
    public void close() {
        Future<?> ended = shutdownGracefully(0, CLOSE_MILLIS, TimeUnit.MILLISECONDS);
        if (!RdmaEventLoop.isCurrent()) {
            clock().passUntil(ended::isDone);
            ended.awaitUninterruptibly();
        }
    }

    @Override
    public Future<?> shutdownGracefully(long quietPeriod, long timeout, TimeUnit unit) {
        super.shutdownGracefully(quietPeriod, timeout, unit);
        companions.forEach(companion -> companion.shutdownGracefully(quietPeriod, timeout, unit));
        return terminationFuture();
    }

    @Override
    @Deprecated
    public void shutdown() {
        super.shutdown();
        companions.forEach(RdmaEventLoopGroup::shutdown);
    }

    @Override
    public Future<?> terminationFuture() {
        return companions.isEmpty() ? super.terminationFuture() : allEnded;
    }

    @Override
    public boolean isShuttingDown() {
        for (EventExecutor loop : this) {
            if (!((RdmaEventLoop) loop).isEnding()) {
                return false;
            }
        }
        return companions.stream().allMatch(RdmaEventLoopGroup::isShuttingDown);
    }

    @Override
    public boolean isShutdown() {
        return super.isShutdown() && companions.stream().allMatch(RdmaEventLoopGroup::isShutdown);
    }

    @Override
    public boolean isTerminated() {
        return super.isTerminated() && companions.stream().allMatch(RdmaEventLoopGroup::isTerminated);
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        long deadlineNanos = System.nanoTime() + unit.toNanos(timeout);
        boolean ended = super.awaitTermination(timeout, unit);
        for (RdmaEventLoopGroup companion : companions) {
            ended &= companion.awaitTermination(Math.max(0, deadlineNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
        }
        return ended;
    }

    @Override
    protected IoEventLoop newChild(Executor executor, IoHandlerFactory ioHandlerFactory, Object... arguments) {
        return new RdmaEventLoop(this, executor, ioHandlerFactory, (LoopGroup) arguments[0]);
    }

    /** The ladder of clients on a loop, unless they choose another. */
    static LadderOptions ladderOf(EventLoop loop) {
        LadderOptions of = loop.parent() instanceof RdmaEventLoopGroup group ? group.ladder : null;
        return of == null ? LadderOptions.DEFAULTS : of;
    }
}
