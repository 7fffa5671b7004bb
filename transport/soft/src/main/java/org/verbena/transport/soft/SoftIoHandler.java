package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandle;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoHandle;
import io.netty.util.concurrent.ScheduledFuture;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareReceiveQueue;
import org.verbena.transport.spi.PollCounters;
import org.verbena.transport.spi.SpinBudget;

/**
 * Netty's NIO handler with the parts that all connections of one loop share: the buffer that sockets are read into, the
 * batches that they are written from, the shared receive queue, the supervision of silent peers. When the loop ends,
 * everything on it ends with it. One thread: the loop's.
 */
final class SoftIoHandler implements IoHandler {
    /** What one read of a socket takes at the most, and so what one connection may do before others have their turn. */
    static final int READ_BYTES = 256 * 1024;

    /** Batches kept for the next write. */
    private static final int MAX_IDLE_BATCHES = 4;

    /** How often within the stall timeout the sockets are checked. */
    static final int TICKS_PER_STALL = 4;

    private final IoHandler nio;
    private final SpinBudget spin;
    private final SoftOptions options;
    private final SoftwareDomain domain;
    private final PollCounters.Loop counters;
    private int completions;
    private final List<LoopMember> members = new ArrayList<>();
    private final ArrayDeque<Runnable> turns = new ArrayDeque<>();
    private final TurnContext turnContext = new TurnContext();
    private final ArrayDeque<TxBatch> idleBatches = new ArrayDeque<>();
    private final CRC32C crc = new CRC32C();
    private @Nullable ByteBuffer readBuffer;
    private @Nullable MemorySegment readSegment;
    private @Nullable SoftwareReceiveQueue sharedReceiveQueue;
    private @Nullable IoEventLoop loop;
    private int tick;
    private @Nullable ScheduledFuture<?> nextTick;

    /**
     * Made by the provider's factory.
     *
     * @param nio does the selecting
     * @param spinNanos as in {@link org.verbena.transport.spi.CompletionLoopOptions#spinNanos()}
     * @param options of the provider
     * @param domain of the provider
     * @param counters of this loop
     */
    SoftIoHandler(
            IoHandler nio, long spinNanos, SoftOptions options, SoftwareDomain domain, PollCounters.Loop counters) {
        this.nio = nio;
        this.spin = new SpinBudget(spinNanos);
        this.options = options;
        this.domain = domain;
        this.counters = counters;
    }

    @Override
    public void initialize() {
        nio.initialize();
    }

    @Override
    public int run(IoHandlerContext context) {
        turnContext.of = context;
        int handled = turnContext.canBlock() ? await() : nio.run(turnContext);
        int due = turns.size();
        for (int i = 0; i < due; i++) {
            turns.remove().run();
        }
        counters.polled(completions);
        completions = 0;
        return handled + due;
    }

    /** An endpoint has reported a completion. */
    void completed() {
        completions++;
    }

    /** Nothing is left to do: waits for more. */
    private int await() {
        long start = System.nanoTime();
        turnContext.activeNanos = 0;
        int handled = spin(start);
        if (handled == 0) {
            counters.waits(start);
            handled = nio.run(turnContext);
            counters.woke();
        }
        if (spin.isAdaptive()) {
            spin.waited(System.nanoTime() - start - turnContext.activeNanos);
        }
        return handled;
    }

    /** Polls for a while, but only until a task or a deadline is due. */
    private int spin(long start) {
        long budgetNanos = spin.nanos(start);
        if (budgetNanos == 0) {
            return 0;
        }
        turnContext.polling = true;
        long now = start;
        try {
            do {
                int handled = nio.run(turnContext);
                if (handled > 0) {
                    return handled;
                }
                if (spin.isAdaptive()) {
                    Thread.yield();
                } else {
                    Thread.onSpinWait();
                }
                now = System.nanoTime();
                counters.spins(now);
            } while (spin.polled(now) && turnContext.mayPollOn() && now - start < budgetNanos);
        } finally {
            turnContext.polling = false;
            counters.spun(now - start);
        }
        return 0;
    }

    /**
     * Runs a turn once the sockets have been polled again. A task would run it sooner, and a chain of tasks would keep
     * the loop from its sockets.
     *
     * @param turn what to run
     */
    void runAfterPoll(Runnable turn) {
        turns.add(turn);
    }

    /** Netty's context, which must not block while turns are due. */
    private final class TurnContext implements IoHandlerContext {
        private @Nullable IoHandlerContext of;
        private boolean polling;
        private long activeNanos;

        private IoHandlerContext of() {
            IoHandlerContext now = of;
            if (now == null) {
                throw new IllegalStateException("not running");
            }
            return now;
        }

        @Override
        public boolean canBlock() {
            return !polling && turns.isEmpty() && of().canBlock();
        }

        /** Whether no turn, task or deadline is due. */
        boolean mayPollOn() {
            return turns.isEmpty() && of().canBlock() && of().delayNanos(System.nanoTime()) > 0;
        }

        @Override
        public long delayNanos(long currentTimeNanos) {
            return of().delayNanos(currentTimeNanos);
        }

        @Override
        public long deadlineNanos() {
            return of().deadlineNanos();
        }

        @Override
        public void reportActiveIoTime(long nanos) {
            activeNanos += nanos;
            if (of().shouldReportActiveIoTime()) {
                of().reportActiveIoTime(nanos);
            }
        }

        /** Netty's handler asks when it has selected, before it handles what it found. */
        @Override
        public boolean shouldReportActiveIoTime() {
            counters.woke();
            return spin.isAdaptive() || of().shouldReportActiveIoTime();
        }
    }

    @Override
    public void wakeup() {
        nio.wakeup();
    }

    @Override
    public boolean isCompatible(Class<? extends IoHandle> handleType) {
        return nio.isCompatible(handleType);
    }

    @Override
    public IoRegistration register(IoHandle handle) throws Exception {
        if (handle instanceof LoopMember member) {
            loop = member.loop();
            member.bind(this);
            IoRegistration registration = nio.register(handle);
            member.setPlace(members.size());
            members.add(member);
            watch();
            return registration;
        }
        return nio.register(handle);
    }

    @Override
    public void prepareToDestroy() {
        closeAll();
        nio.prepareToDestroy();
    }

    @Override
    public void destroy() {
        closeAll();
        SoftwareReceiveQueue queue = sharedReceiveQueue;
        if (queue != null) {
            sharedReceiveQueue = null;
            queue.close();
        }
        counters.close();
        nio.destroy();
    }

    private void closeAll() {
        while (!members.isEmpty()) {
            LoopMember member = members.getLast();
            member.onLoopEnding();
            if (isMember(member)) {
                member.closeNow();
                remove(member);
            }
        }
    }

    /** A member of a loop, which ends with it. */
    interface LoopMember extends NioIoHandle {
        @Override
        void close();

        /** Its loop. */
        IoEventLoop loop();

        /** Where it stands among the members. */
        int place();

        /**
         * It moves.
         *
         * @param place where it stands from now on
         */
        void setPlace(int place);

        /**
         * It is being registered.
         *
         * @param handler with this handler
         */
        void bind(SoftIoHandler handler);

        /** Time has passed: see {@link #tick()}. */
        void onTick();

        /** The loop ends: finish now. */
        void onLoopEnding();

        /** Closes the channel at once, and leaves. */
        void closeNow();
    }

    /**
     * A member is done with this loop.
     *
     * @param member registered here
     */
    void remove(LoopMember member) {
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

    SoftOptions options() {
        return options;
    }

    SoftwareDomain domain() {
        return domain;
    }

    /**
     * Where sockets are read into: room for what an earlier read left over, then for {@link #READ_BYTES}. Big-endian.
     */
    ByteBuffer readBuffer() {
        ByteBuffer buffer = readBuffer;
        if (buffer == null) {
            buffer = ByteBuffer.allocateDirect(Rdmap.MAX_FPDU_BYTES + READ_BYTES);
            readBuffer = buffer;
        }
        return buffer;
    }

    /** The same memory as {@link #readBuffer()}. */
    MemorySegment readSegment() {
        MemorySegment segment = readSegment;
        if (segment == null) {
            segment = MemorySegment.ofBuffer(readBuffer().clear());
            readSegment = segment;
        }
        return segment;
    }

    /** For one computation at a time. */
    CRC32C crc() {
        return crc;
    }

    /** An empty batch. */
    TxBatch takeBatch() {
        TxBatch batch = idleBatches.pollLast();
        return batch == null ? new TxBatch() : batch;
    }

    /**
     * Takes a batch back.
     *
     * @param batch nobody uses any more
     */
    void returnBatch(TxBatch batch) {
        batch.reset();
        if (idleBatches.size() < MAX_IDLE_BATCHES) {
            idleBatches.addLast(batch);
        }
    }

    /** The loop's shared receive queue, made when first asked for. */
    SoftwareReceiveQueue sharedReceiveQueue() {
        SoftwareReceiveQueue queue = sharedReceiveQueue;
        if (queue == null) {
            queue = new SoftwareReceiveQueue(domain, options.sharedReceiveDepth());
            sharedReceiveQueue = queue;
        }
        return queue;
    }

    /** A coarse clock for stalls that makes no system call: {@link #TICKS_PER_STALL} to a stall timeout. */
    int tick() {
        return tick;
    }

    private void watch() {
        IoEventLoop watched = loop;
        if (nextTick == null && watched != null && options.stallTimeoutMillis() > 0 && !watched.isShuttingDown()) {
            nextTick = watched.schedule(
                    this::onTick, Math.max(1, options.stallTimeoutMillis() / TICKS_PER_STALL), TimeUnit.MILLISECONDS);
        }
    }

    private void onTick() {
        nextTick = null;
        passTick();
        if (!members.isEmpty()) {
            watch();
        }
    }

    /** Lets time pass: called by the loop, and by tests that control the time. */
    void passTick() {
        tick++;
        for (int i = members.size() - 1; i >= 0; i--) {
            if (i < members.size()) {
                members.get(i).onTick();
            }
        }
    }
}
