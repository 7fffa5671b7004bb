package org.verbena.api.internal.loop;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.SingleThreadIoEventLoop;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.BlockingOperationException;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.netty.util.concurrent.Ticker;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.stat.LoopStat;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.protocol.TransferBudget;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.RdmaProvider;

/**
 * A loop that closes its channels before it ends. Netty's loops close them while they end, when timers no longer run
 * and after the I/O handler has ended its connections. That suits sockets; an RDMA connection closes with a handshake,
 * which needs the loop.
 */
public final class RdmaEventLoop extends SingleThreadIoEventLoop {
    private static final Logger LOG = LoggerFactory.getLogger(RdmaEventLoop.class);

    /** The loops that run now, of any group, by their threads. */
    private static final Map<Thread, RdmaEventLoop> RUNNING = new ConcurrentHashMap<>();

    /**
     * Closes a channel in place of {@code close()}, if another channel uses it and may still have data for it to send.
     */
    public static final AttributeKey<Consumer<Channel>> CLOSER = AttributeKey.valueOf(RdmaEventLoop.class, "closer");

    private final AtomicBoolean ending = new AtomicBoolean();

    private final LoopNotifier notifier = new LoopNotifier(this);

    /** The channels registered here, and what closes them at once. Event loop only. */
    private final Map<Channel, Runnable> channels = new HashMap<>();

    /**
     * How much its channels may have in flight, for each device. Event loop only; an entry disappears with its device.
     */
    private final Map<MemoryDomain, TransferBudget> budgets = new WeakHashMap<>();

    private final LoopStat stat = new LoopStat(this);
    private final LoopGroup group;

    /** Null while the constructor of Netty's class runs, which reads the time. */
    private final @Nullable Ticker ticker;

    /** The channels that still have to close before the loop may end. Event loop only. */
    private int closing;

    public RdmaEventLoop(IoEventLoopGroup parent, Executor executor, IoHandlerFactory factory, LoopGroup group) {
        super(parent, (Executor) task -> executor.execute(() -> runLoop(group.clock(), task)), factory);
        this.group = group;
        ticker = group.clock().ticker();
    }

    private static void runLoop(LoopClock clock, Runnable loop) {
        try {
            HandlerTime.runLoop(clock, loop);
        } finally {
            RUNNING.remove(Thread.currentThread());
        }
    }

    @Override
    protected void run() {
        RUNNING.put(Thread.currentThread(), this);
        super.run();
    }

    /** One that runs, of any group; null if there is none. Any thread. */
    static @Nullable RdmaEventLoop any() {
        return RUNNING.values().stream()
                .filter(loop -> !loop.isShuttingDown())
                .findAny()
                .orElse(null);
    }

    /** Whether the calling thread is a loop of any group, or Netty's global executor, on which groups end. */
    public static boolean isCurrent() {
        return RUNNING.containsKey(Thread.currentThread()) || GlobalEventExecutor.INSTANCE.inEventLoop();
    }

    /** Throws if the calling thread is an event loop, which must not wait. */
    public static void checkMayWait() {
        if (isCurrent()) {
            throw new BlockingOperationException("do not wait on the event loop, which this future or others need: add"
                    + " a listener or a stage, wait on another thread, or build with virtualThreads(true)");
        }
    }

    /** The same for a Netty future, which Netty's executors complete as well. */
    public static void checkMayWait(EventExecutor executor) {
        if (executor.inEventLoop()) {
            throw new BlockingOperationException("do not wait on the event loop, which completes this future: add a"
                    + " listener or a stage, wait on another thread, or build with virtualThreads(true)");
        }
        checkMayWait();
    }

    /** Throws if the calling thread is an event loop. */
    public static void checkMayWait(String call, String remedy) {
        if (isCurrent()) {
            throw new BlockingOperationException("do not wait on the event loop: " + call
                    + " waits for what this thread or others like it have to do; " + remedy
                    + ", or call it on another thread");
        }
    }

    /** What this loop has in common with others. Any thread. */
    LoopGroup group() {
        return group;
    }

    @Override
    public Ticker ticker() {
        Ticker known = ticker;
        return known == null ? Ticker.systemTicker() : known;
    }

    /** Runs the listeners of futures that this loop completes, even when the loop has ended. */
    public LoopNotifier notifier() {
        return notifier;
    }

    /** What {@code verbena stat} shows about the connections here. Event loop only. */
    public LoopStat stat() {
        return stat;
    }

    /**
     * Registers a channel; one that a server accepted from another of its providers on a loop of that one.
     *
     * @param channel to be registered
     * @return done when it is registered; its listeners are called even if this loop has ended, or has no thread
     */
    @Override
    public ChannelFuture register(Channel channel) {
        EventLoop suitable = loopOf(channel);
        return suitable == this
                ? super.register(new DefaultChannelPromise(channel, notifier))
                : suitable.register(channel);
    }

    @Override
    public ChannelFuture register(ChannelPromise promise) {
        EventLoop suitable = loopOf(promise.channel());
        return suitable == this ? super.register(promise) : suitable.register(promise);
    }

    /** This loop, unless the channel is of another provider that the group has loops of. */
    private EventLoop loopOf(Channel channel) {
        if (channel.unsafe() instanceof AcceptedUnsafe accepted) {
            RdmaProvider wanted = accepted.acceptedFrom();
            EventLoop suitable = wanted == null ? null : LoopGroup.loopFor(this, wanted);
            return suitable == null ? this : suitable;
        }
        return this;
    }

    @Override
    protected int runIo() {
        int handled = super.runIo();
        if (handled > 0) {
            stat.active0();
        }
        return handled;
    }

    /**
     * Closes all channels as {@code close} does, within the timeout, and then ends as Netty's loops do. New channels
     * are refused from now on.
     *
     * @param quietPeriod how long no task must have been submitted, once the channels are closed
     * @param timeout how long all of it may take, the quiet period included
     * @param unit of both
     * @return done when the loop has ended
     */
    @Override
    public Future<?> shutdownGracefully(long quietPeriod, long timeout, TimeUnit unit) {
        if (quietPeriod < 0 || timeout < quietPeriod) {
            return super.shutdownGracefully(quietPeriod, timeout, unit); // which throws for invalid arguments
        }
        if (!isShuttingDown() && ending.compareAndSet(false, true)) {
            long deadlineNanos = group.clock().nanoTime() + Math.min(unit.toNanos(timeout), Long.MAX_VALUE >> 1);
            try {
                // Nothing happens by itself while a clock stands still.
                long quietNanos = group.clock().isSystem() ? unit.toNanos(quietPeriod) : 0;
                execute(() -> closeChannels0(quietNanos, deadlineNanos));
            } catch (RejectedExecutionException ended) {
                return terminationFuture(); // shutdown() was called in the meantime
            } catch (Error noThread) { // for a loop that has not begun, or no memory: it ends without a handshake
                LOG.warn("an event loop ends without closing its channels", noThread);
                return super.shutdownGracefully(quietPeriod, timeout, unit);
            }
        }
        return terminationFuture();
    }

    private void closeChannels0(long quietNanos, long deadlineNanos) {
        List<Channel> open = List.copyOf(channels.keySet());
        closing = open.size();
        Runnable end = () -> endNow0(quietNanos, deadlineNanos);
        if (open.isEmpty()) {
            end.run();
            return;
        }
        schedule(end, deadlineNanos - group.clock().nanoTime() - quietNanos, TimeUnit.NANOSECONDS);
        for (Channel channel : open) {
            channel.closeFuture().addListener(closed -> {
                closing--;
                if (closing == 0) {
                    end.run();
                }
            });
            Consumer<Channel> closer = channel.attr(CLOSER).get();
            if (closer == null) {
                channel.close();
            } else {
                closer.accept(channel);
            }
        }
    }

    private void endNow0(long quietNanos, long deadlineNanos) {
        if (!isShuttingDown()) {
            // Here, while tasks that this causes can still run: Netty runs its hooks too late for that.
            List.copyOf(channels.values()).forEach(Runnable::run);
            long leftNanos = Math.max(quietNanos, deadlineNanos - group.clock().nanoTime());
            super.shutdownGracefully(quietNanos, leftNanos, TimeUnit.NANOSECONDS);
        }
    }

    /**
     * {@inheritDoc}
     *
     * <p>Netty waits until its clock has passed the end of the quiet period, also of none, unless a task has run: this
     * one ends the wait of a loop whose clock stands still.
     */
    @Override
    protected boolean confirmShutdown() {
        if (isShuttingDown() && !isShutdown() && !group.clock().isSystem()) {
            addTask(() -> {});
        }
        return super.confirmShutdown();
    }

    /** Whether it closes its channels, or has ended. Any thread. */
    public boolean isEnding() {
        return ending.get() || isShuttingDown();
    }

    /**
     * Registers a channel unless the loop is ending; the promise has the outcome.
     *
     * @param atShutdown closes the channel at once; run if the loop ends while it is here
     * @return whether it was registered
     */
    public boolean enter0(Channel channel, Runnable atShutdown, ChannelPromise promise) {
        assert inEventLoop();
        if (isEnding()) {
            promise.setFailure(
                    new RejectedExecutionException("the event loop is shutting down and takes no more channels"));
            return false;
        }
        channels.put(channel, atShutdown);
        addShutdownHook(atShutdown);
        promise.setSuccess(); // the handlers are there now
        return true;
    }

    /** The budget of this loop's channels for their long reads and writes on a device. */
    public TransferBudget transferBudget0(MemoryDomain domain) {
        assert inEventLoop();
        return budgets.computeIfAbsent(domain, device -> new TransferBudget(group.transferBudgetBytes()));
    }

    /** A channel has left. */
    public void leave0(Channel channel, Runnable atShutdown) {
        assert inEventLoop();
        removeShutdownHook(atShutdown);
        channels.remove(channel);
    }
}
