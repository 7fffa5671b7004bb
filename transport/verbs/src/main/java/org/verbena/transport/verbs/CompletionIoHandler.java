package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandle;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoOps;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoHandle;
import io.netty.util.collection.LongObjectHashMap;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.PollCounters;
import org.verbena.transport.spi.SpinBudget;
import org.verbena.transport.verbs.epoll.DescriptorIoHandler;

/**
 * The I/O of a completion loop: the completion-channel thread. It owns a completion channel and the completion queues
 * of each device in use, and with them all endpoints and listeners of the loop; their callbacks are made here.
 *
 * <pre>
 * one turn:  poll -> something? handle it, poll again; a few times, and that was the turn
 *                    nothing?   spin for the budget, polling -> something? handle it, spin again; a few times, unless
 *                                                                        there are tasks, and that was the turn
 *                               arm -> poll again, for what came in between
 *                               block on {eventfd, completion channels} -> poll
 * </pre>
 *
 * <p>Netty's NIO channels may share the loop ({@link SocketChannels}): from the first one on, a turn polls their
 * selector too, and blocks on it.
 *
 * <p>Asynchronous events of a device are taken by the connection loop, since a device has one stream of them and many
 * loops.
 */
final class CompletionIoHandler extends DescriptorIoHandler {
    private static final Logger LOG = LoggerFactory.getLogger(CompletionIoHandler.class);

    /** While there is always work, descriptors are checked once in so many polls. */
    private static final int POLLS_BETWEEN_CHECKS = 64;

    /** While spinning, polls between two checks of the clock and the tasks: the checks take longer than a poll. */
    private static final int POLLS_BETWEEN_CLOCKS = 8;

    /**
     * How long a loop polls before it lets others have the processor: the call costs as much as ten polls, also when
     * nobody wants it.
     */
    private static final long NANOS_BETWEEN_YIELDS = 2_000;

    /** Polls before the sockets, whose check is a system call, and before Netty's tasks: 2 us of short messages. */
    private static final int POLLS_A_TURN = 8;

    /** How long a loop with connections sleeps: for so long one may miss what an adapter's lost event was for. */
    private static final long MAX_SLEEP_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** What the selector of the sockets is watched with. The devices are watched with their numbers. */
    private static final long SOCKETS = Long.MAX_VALUE;

    /** How often endpoints that drain are checked. */
    private static final long DRAIN_TICK_MILLIS = 2;

    /** How long the end of a loop may take: far longer than devices need to flush. */
    private static final long DESTROY_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final VerbsProvider provider;
    private final ThreadAwareExecutor executor;
    private final CompletionLoopOptions options;
    private final int ordinal;
    private final SpinBudget spin;
    private final PollCounters.Loop counters;
    private final List<LoopDevice> devices = new ArrayList<>();

    /** By the number that its channel is watched with. */
    private final LongObjectHashMap<LoopDevice> watched = new LongObjectHashMap<>();

    private long nextNumber;

    private final Set<VerbsHandle> handles = Collections.newSetFromMap(new IdentityHashMap<>());

    /** Tasks from other threads once the loop accepts none any more; {@link #destroy()} runs them. */
    private final ConcurrentLinkedQueue<Runnable> lastTasks = new ConcurrentLinkedQueue<>();

    private final List<LoopEndpoint> draining = new ArrayList<>();
    /** Made for the first of them. */
    private @Nullable SocketChannels sockets;

    private boolean drainTickScheduled;
    private boolean destroying;
    private int pollsSinceCheck;
    private int pollsSinceSockets;

    /** Whether its thread stays near a device: the first of its devices that has a NUMA node. */
    private boolean isPlaced;

    CompletionIoHandler(
            VerbsProvider provider, ThreadAwareExecutor executor, CompletionLoopOptions options, int ordinal) {
        super(executor);
        this.provider = provider;
        this.executor = executor;
        this.options = options;
        this.ordinal = ordinal;
        this.spin = new SpinBudget(options.spinNanos());
        counters = provider.pollCounters().newLoop();
    }

    VerbsProvider provider() {
        return provider;
    }

    CompletionLoopOptions options() {
        return options;
    }

    /** The completion vector of its queues, modulo the number of vectors: the loop's number. */
    int ordinal() {
        return ordinal;
    }

    /**
     * Runs something on the loop, also while the loop ends.
     *
     * @param task what to run; lost if the loop has ended, since nothing is left to report to
     */
    void execute(Runnable task) {
        try {
            executor.execute(task);
        } catch (RejectedExecutionException ending) {
            lastTasks.add(task);
        }
    }

    /** The queues for a device; made with the first endpoint on it. */
    LoopDevice deviceFor(VerbsDevice device) {
        for (LoopDevice known : devices) {
            if (known.device() == device && !known.isRetired()) {
                return known;
            }
        }
        if (!isPlaced && ordinal < device.near().cardinality()) {
            isPlaced = ProcessorAffinity.keepOn(device.near());
        }
        LoopDevice made = new LoopDevice(this, device);
        try {
            watch(made.fd(), nextNumber);
        } catch (RuntimeException refused) {
            made.close();
            throw refused;
        }
        watched.put(nextNumber++, made);
        devices.add(made);
        device.add(made);
        return made;
    }

    /** A lost device is not needed any more. Not within a batch. */
    void close(LoopDevice device) {
        if (devices.remove(device)) {
            unwatch(device);
            device.close();
        }
    }

    private void unwatch(LoopDevice device) {
        if (watched.values().remove(device)) {
            unwatch(device.fd());
        }
    }

    @Override
    protected int doWork(IoHandlerContext context) {
        int handled = pollOn();
        if (handled > 0 || !context.canBlock()) {
            if (pollsSinceCheck >= POLLS_BETWEEN_CHECKS) {
                pollsSinceCheck = 0;
                look();
            }
            return handled == 0 || pollsSinceSockets >= POLLS_A_TURN ? handled + pollSockets() : handled;
        }
        int total = 0;
        long start;
        do {
            pollsSinceSockets++;
            start = System.nanoTime();
            handled = spin(context, start);
            total += handled;
        } while (handled > 0
                && total < options.maxCompletionsPerTurn()
                && pollsSinceSockets < POLLS_A_TURN
                && context.canBlock());
        if (handled > 0 || !context.canBlock()) {
            return pollsSinceSockets >= POLLS_A_TURN ? total + pollSockets() : total;
        }
        long sleepNanos = Long.MAX_VALUE;
        for (int i = 0; i < devices.size(); i++) {
            devices.get(i).arm();
            sleepNanos = devices.get(i).hasEndpoints() ? MAX_SLEEP_NANOS : sleepNanos;
        }
        handled = poll();
        if (handled == 0) {
            handled = pollSockets();
        }
        if (handled > 0) {
            return total + handled;
        }
        pollsSinceCheck = 0;
        counters.waits(start);
        block(context, sleepNanos);
        counters.woke();
        if (spin.isAdaptive()) {
            spin.waited(System.nanoTime() - start);
        }
        return total + poll() + pollSockets();
    }

    /**
     * Polls until there is nothing: while a batch was handled the next may have come, and a turn of Netty's loop costs
     * more than a poll. Tasks, timers and sockets wait for a few polls at most, and for no more completions than one
     * turn may handle.
     */
    private int pollOn() {
        int max = options.maxCompletionsPerTurn();
        int total = 0;
        int handled;
        do {
            pollsSinceCheck++;
            pollsSinceSockets++;
            handled = poll(max - total);
            total += handled;
        } while (handled > 0 && total < max && pollsSinceSockets < POLLS_A_TURN);
        return total;
    }

    private int pollSockets() {
        pollsSinceSockets = 0;
        SocketChannels present = sockets;
        return present == null ? 0 : present.poll();
    }

    private int poll() {
        return poll(options.maxCompletionsPerTurn());
    }

    private int poll(int maxOfAQueue) {
        int handled = 0;
        for (int i = 0; i < devices.size(); i++) {
            handled += devices.get(i).poll(maxOfAQueue);
        }
        counters.polled(handled);
        return handled;
    }

    private int spin(IoHandlerContext context, long start) {
        long nanos = spin.nanos(start);
        if (nanos == 0 || devices.isEmpty()) {
            return 0;
        }
        long budgetNanos = Math.min(nanos, context.delayNanos(start));
        long now = start;
        long yieldedAt = start;
        do {
            for (int i = 0; i < POLLS_BETWEEN_CLOCKS; i++) {
                int handled = poll();
                if (handled > 0) {
                    counters.spun(now - start);
                    return handled;
                }
                Thread.onSpinWait();
            }
            int handled = pollSockets();
            if (handled > 0) {
                counters.spun(now - start);
                return handled;
            }
            now = System.nanoTime();
            if (spin.isAdaptive() && now - yieldedAt >= NANOS_BETWEEN_YIELDS) {
                Thread.yield();
                now = System.nanoTime();
                yieldedAt = now;
            }
        } while (spin.polled(now) && context.canBlock() && now - start < budgetNanos);
        counters.spun(now - start);
        return 0;
    }

    @Override
    protected void onReadable(long data) {
        if (data == SOCKETS) {
            return; // each turn polls the sockets
        }
        LoopDevice device = watched.get(data);
        if (device != null && !device.takeEvents()) {
            unwatch(device);
        }
    }

    /** Watches an endpoint until everything it posted has come back. */
    void startDraining(IoEventLoop loop, LoopEndpoint endpoint) {
        draining.add(endpoint);
        scheduleDrainTick(loop);
    }

    private void scheduleDrainTick(IoEventLoop loop) {
        if (!drainTickScheduled && !destroying && !loop.isShuttingDown()) {
            loop.schedule(
                    () -> {
                        drainTickScheduled = false;
                        drainTick();
                        if (!draining.isEmpty()) {
                            scheduleDrainTick(loop);
                        }
                    },
                    DRAIN_TICK_MILLIS,
                    TimeUnit.MILLISECONDS);
            drainTickScheduled = true; // last: it may be refused
        }
    }

    private void drainTick() {
        long now = System.nanoTime();
        for (int i = draining.size() - 1; i >= 0; i--) {
            LoopEndpoint endpoint = draining.get(i);
            if (!endpoint.drainTick(now)) {
                draining.remove(endpoint);
            }
        }
    }

    @Override
    public IoRegistration register(IoHandle handle) throws Exception {
        if (handle instanceof NioIoHandle) {
            return registerSocket(handle);
        }
        if (!(handle instanceof VerbsHandle mine)) {
            throw new IllegalArgumentException("a loop of the verbs provider cannot serve a "
                    + handle.getClass().getName() + ": give channels of another transport a loop of their own");
        }
        handles.add(mine);
        Registration registration = new Registration(mine);
        handle.registered();
        return registration;
    }

    private IoRegistration registerSocket(IoHandle handle) throws Exception {
        SocketChannels present = sockets;
        if (present == null) {
            present = new SocketChannels(executor, descriptor -> watch(descriptor, SOCKETS));
            sockets = present;
        }
        return present.register(handle);
    }

    @Override
    public boolean isCompatible(Class<? extends IoHandle> handleType) {
        return VerbsHandle.class.isAssignableFrom(handleType) || NioIoHandle.class.isAssignableFrom(handleType);
    }

    @Override
    public void prepareToDestroy() {
        SocketChannels present = sockets;
        if (present != null) {
            present.prepareToDestroy();
        }
        for (VerbsHandle handle : List.copyOf(handles)) {
            handle.close();
        }
    }

    /** Netty may skip {@link #prepareToDestroy()}, and runs no tasks any more: what is still here ends now. */
    @Override
    public void destroy() {
        destroying = true;
        try {
            for (VerbsHandle handle : List.copyOf(handles)) {
                handle.destroy();
            }
            long deadline = System.nanoTime() + DESTROY_NANOS;
            while (!handles.isEmpty() && System.nanoTime() - deadline < 0) {
                Runnable task;
                while ((task = lastTasks.poll()) != null) {
                    task.run();
                }
                poll();
                drainTick();
                if (!handles.isEmpty()) {
                    TimeUnit.MICROSECONDS.sleep(200);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            if (!handles.isEmpty()) {
                LOG.error(
                        "The loop ended with {} connections that the device did not release: {}",
                        handles.size(),
                        handles);
                for (VerbsHandle handle : List.copyOf(handles)) {
                    handle.abandon();
                }
            }
            counters.close();
            SocketChannels present = sockets;
            if (present != null) {
                present.destroy();
            }
            super.destroy(); // which also closes the epoll instance
            devices.forEach(LoopDevice::close);
            devices.clear();
        }
    }

    /** The registration of a handle. */
    private final class Registration implements IoRegistration {
        private final VerbsHandle handle;
        private boolean valid = true;

        Registration(VerbsHandle handle) {
            this.handle = handle;
        }

        /** The handler, which is what handles register for. */
        @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
        @Override
        public <T> @Nullable T attachment() {
            return (T) CompletionIoHandler.this;
        }

        @Override
        public long submit(IoOps ops) {
            throw new UnsupportedOperationException("a verbs handle has no I/O operations");
        }

        @Override
        public boolean isValid() {
            return valid;
        }

        /** On the loop's thread. */
        @Override
        public boolean cancel() {
            if (!valid) {
                return false;
            }
            valid = false;
            handles.remove(handle);
            handle.unregistered();
            return true;
        }
    }
}
