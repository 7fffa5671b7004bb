package org.verbena.transport.software;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandle;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoHandler;
import io.netty.util.concurrent.ScheduledFuture;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.PollCounters;
import org.verbena.transport.spi.SpinBudget;
import org.verbena.transport.system.Requirements;

/**
 * Netty's NIO handler, and what all connections of one loop share: the turns that are due, the shared receive queue,
 * the ticks by which silent peers are noticed. When the loop ends, everything on it ends with it. Not thread-safe;
 * confined to the loop's thread.
 */
public abstract class SoftwareIoHandler implements IoHandler {
    /** How often within the stall timeout the members are checked. */
    public static final int TICKS_PER_STALL = 4;

    /** How long turns run before the peers are polled again: what a peer with a short message waits for. */
    private static final long TURNS_NANOS = 250_000;

    private final IoHandler nio;
    protected final SpinBudget spin;
    protected final SoftwareDomain domain;
    protected final PollCounters.Loop counters;

    /** Turns that run once the peers have been polled again. */
    protected final ArrayDeque<Runnable> turns = new ArrayDeque<>();

    private final int sharedReceiveDepth;
    private final int stallTimeoutMillis;
    private final List<LoopMember> members = new ArrayList<>();
    private int completions;
    private long selects;
    private int tick;
    private @Nullable SoftwareReceiveQueue sharedReceiveQueue;
    private @Nullable ScheduledFuture<?> nextTick;

    /**
     * Made by a provider's factory.
     *
     * @param nio does the selecting
     * @param spinNanos as in {@link org.verbena.transport.CompletionLoopOptions#spinNanos()}
     * @param domain of the provider
     * @param counters of this loop
     * @param sharedReceiveDepth of the shared receive queue
     * @param stallTimeoutMillis {@link #TICKS_PER_STALL} ticks; 0 for none
     */
    protected SoftwareIoHandler(
            IoHandler nio,
            long spinNanos,
            SoftwareDomain domain,
            PollCounters.Loop counters,
            int sharedReceiveDepth,
            int stallTimeoutMillis) {
        this.nio = nio;
        this.spin = new SpinBudget(spinNanos);
        this.domain = domain;
        this.counters = counters;
        this.sharedReceiveDepth = sharedReceiveDepth;
        this.stallTimeoutMillis = stallTimeoutMillis;
    }

    /**
     * Why no provider in software can work in this JVM.
     *
     * @return null if it can; the message says what to do
     */
    public static @Nullable Throwable unavailabilityCause() {
        String unmet = Requirements.unmet();
        return unmet == null ? null : new UnsupportedOperationException(unmet);
    }

    /**
     * A factory of handlers.
     *
     * @param handlers makes one, on Netty's
     * @return for Netty's group
     */
    public static IoHandlerFactory factory(Function<IoHandler, ? extends SoftwareIoHandler> handlers) {
        IoHandlerFactory nio = NioIoHandler.newFactory();
        return new IoHandlerFactory() {
            @Override
            public IoHandler newHandler(ThreadAwareExecutor executor) {
                return handlers.apply(nio.newHandler(executor));
            }

            @Override
            public boolean isChangingThreadSupported() {
                return nio.isChangingThreadSupported();
            }
        };
    }

    /** Refuses a loop that is not of this kind. */
    public static void checkLoop(IoEventLoop loop, Class<? extends SoftwareIoHandler> type, String provider) {
        if (!loop.isIoType(type)) {
            throw new IllegalArgumentException(loop + " is not an event loop of the " + provider
                    + " provider: create the group with its newIoHandlerFactory");
        }
    }

    /** Refuses an address that has not been looked up. */
    public static void checkResolved(InetSocketAddress address) {
        if (address.isUnresolved()) {
            throw new IllegalArgumentException(address + " is not resolved");
        }
    }

    @Override
    public final void initialize() {
        nio.initialize();
        onLoopBegun();
    }

    /** The loop begins: its thread is this one. */
    protected void onLoopBegun() {}

    /**
     * Runs the turns that are due, the oldest first, for {@link #TURNS_NANOS} at the most, and counts what they and the
     * polls before have found; returns how many it ran.
     */
    protected final int runTurns() {
        int due = turns.size();
        int ran = 0;
        if (due > 0) {
            long beganNanos = System.nanoTime();
            do {
                turns.remove().run();
                ran++;
            } while (ran < due && System.nanoTime() - beganNanos < TURNS_NANOS);
        }
        counters.polled(completions);
        completions = 0;
        return ran;
    }

    /**
     * Runs a turn once the peers have been polled again, and the turns before it have run. A task would run it sooner,
     * and a chain of tasks would keep the loop from its sockets.
     */
    public final void runAfterPoll(Runnable turn) {
        turns.add(turn);
    }

    /** Handles what the selector finds; may block if that allows it. Releases the channels closed before. */
    protected int select(IoHandlerContext context) {
        selects++;
        return nio.run(context);
    }

    /** Runs a turn once the selector has released the channels that are closed now: until then the system has them. */
    public final void runAfterSelect(Runnable turn) {
        runAfterSelect(selects, turn);
    }

    private void runAfterSelect(long selectsBefore, Runnable turn) {
        onSelectorChanged();
        turns.add(() -> {
            if (selects == selectsBefore) {
                runAfterSelect(selectsBefore, turn);
            } else {
                turn.run();
            }
        });
    }

    /** Channels, or what they wait for, have changed, which takes effect when the selector selects. */
    protected void onSelectorChanged() {}

    /** An endpoint has reported a completion. */
    public final void completed() {
        completions++;
    }

    /** The loop's shared receive queue, made when first asked for. */
    public final SoftwareReceiveQueue sharedReceiveQueue() {
        SoftwareReceiveQueue queue = sharedReceiveQueue;
        if (queue == null) {
            queue = new SoftwareReceiveQueue(domain, sharedReceiveDepth);
            sharedReceiveQueue = queue;
        }
        return queue;
    }

    /** A coarse clock for stalls that makes no system call: {@link #TICKS_PER_STALL} to a stall timeout. */
    public final int tick() {
        return tick;
    }

    private void watch(IoEventLoop loop) {
        if (nextTick == null && stallTimeoutMillis > 0 && !loop.isShuttingDown()) {
            nextTick = loop.schedule(
                    () -> onTick(loop), Math.max(1, stallTimeoutMillis / TICKS_PER_STALL), TimeUnit.MILLISECONDS);
        }
    }

    private void onTick(IoEventLoop loop) {
        nextTick = null;
        if (!members.isEmpty()) {
            watch(loop);
        }
        passTick();
    }

    /** Lets time pass: called by the loop, and by tests that control the time. */
    public final void passTick() {
        tick++;
        for (int i = members.size() - 1; i >= 0; i--) {
            if (i < members.size()) {
                LoopMember member = members.get(i);
                try {
                    member.onTick();
                } catch (Throwable t) {
                    member.onFailure(t); // and time passes for the others
                }
            }
        }
    }

    @Override
    public void wakeup() {
        nio.wakeup();
    }

    @Override
    public final boolean isCompatible(Class<? extends IoHandle> handleType) {
        return nio.isCompatible(handleType);
    }

    @Override
    public final IoRegistration register(IoHandle handle) throws Exception {
        if (handle instanceof LoopMember member) {
            member.bind(this);
            IoRegistration registration = registered(nio.register(handle));
            member.setPlace(members.size());
            members.add(member);
            watch(member.loop());
            return registration;
        }
        return registered(nio.register(handle));
    }

    /** What the registration of a handle is called through. */
    protected IoRegistration registered(IoRegistration made) {
        return made;
    }

    /** A member is done with this loop. */
    public final void remove(LoopMember member) {
        int place = member.place();
        if (isMember(member)) {
            LoopMember last = members.removeLast();
            if (place < members.size()) {
                members.set(place, last);
                last.setPlace(place);
            }
        }
    }

    private boolean isMember(LoopMember member) {
        int place = member.place();
        return place < members.size() && members.get(place).equals(member);
    }

    @Override
    public final void prepareToDestroy() {
        closeAll();
        nio.prepareToDestroy();
    }

    @Override
    public final void destroy() {
        closeAll();
        SoftwareReceiveQueue queue = sharedReceiveQueue;
        if (queue != null) {
            sharedReceiveQueue = null;
            queue.close();
        }
        counters.close();
        nio.destroy();
        onLoopEnded();
    }

    /** The loop ends: a provider whose connections are no members, since they have no sockets, ends them here. */
    protected void onLoopEnding() {}

    /** The loop has ended: no task runs there any more. */
    protected void onLoopEnded() {}

    private void closeAll() {
        onLoopEnding();
        while (!members.isEmpty()) {
            LoopMember member = members.getLast();
            try {
                member.onLoopEnding();
            } catch (Throwable t) {
                member.onFailure(t);
            }
            if (isMember(member)) {
                member.closeNow();
                remove(member);
            }
        }
    }
}
