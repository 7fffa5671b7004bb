package org.verbena.testing;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.nio.NioIoHandler;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.PollCounters;

/**
 * What a loop's connections share. They have nothing that could be polled: what comes for them is a task of the loop.
 * Not thread-safe; confined to the loop's thread.
 */
final class InProcessIoHandler extends SoftwareIoHandler {
    /** By their loops, until these end. */
    private static final Map<ThreadAwareExecutor, InProcessIoHandler> BY_LOOP = new ConcurrentHashMap<>();

    /** How long a loop with a clock of a test may block by the system's: whatever ends that wakes it. */
    private static final long BLOCK_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final ThreadAwareExecutor executor;

    /** Null if the loop goes by the system's clock. */
    private final TestTime.@Nullable Loop timed;

    private final Set<Member> members = new LinkedHashSet<>();
    private final TurnContext turnContext = new TurnContext();

    /** Something that ends with the loop. */
    interface Member {
        /** The loop ends: finish now. */
        void onLoopEnding();
    }

    private InProcessIoHandler(
            ThreadAwareExecutor executor,
            IoHandler nio,
            SoftwareDomain domain,
            PollCounters.Loop counters,
            int sharedReceiveDepth,
            @Nullable TestTime time) {
        super(nio, 0, domain, counters, sharedReceiveDepth, 0);
        this.executor = executor;
        timed = time == null ? null : time.enter(nio::wakeup);
    }

    static IoHandlerFactory factory(
            SoftwareDomain domain, PollCounters counters, int sharedReceiveDepth, @Nullable TestTime time) {
        IoHandlerFactory nio = NioIoHandler.newFactory();
        return new IoHandlerFactory() {
            @Override
            public IoHandler newHandler(ThreadAwareExecutor executor) {
                InProcessIoHandler made = new InProcessIoHandler(
                        executor, nio.newHandler(executor), domain, counters.newLoop(), sharedReceiveDepth, time);
                BY_LOOP.put(executor, made);
                return made;
            }

            @Override
            public boolean isChangingThreadSupported() {
                return nio.isChangingThreadSupported();
            }
        };
    }

    /** The handler of a loop of this provider; null once the loop has ended. */
    static @Nullable InProcessIoHandler of(IoEventLoop loop) {
        return BY_LOOP.get(loop);
    }

    void add(Member member) {
        members.add(member);
    }

    void remove(Member member) {
        members.remove(member);
    }

    @Override
    public int run(IoHandlerContext context) {
        turnContext.of = context;
        if (timed != null) {
            timed.rests(context::delayNanos);
            if (!turnContext.canBlock()) { // asked only now: a task that is submitted from here on ends the rest
                timed.works();
            }
        }
        if (turnContext.canBlock()) {
            counters.waits(System.nanoTime());
        }
        int handled = select(turnContext);
        counters.woke();
        if (timed != null) {
            timed.works();
        }
        return handled + runTurns();
    }

    @Override
    public void wakeup() {
        if (timed != null) {
            timed.works();
        }
        super.wakeup();
    }

    @Override
    protected void onLoopEnded() {
        if (timed != null) {
            timed.ended();
        }
    }

    @Override
    protected void onLoopEnding() {
        BY_LOOP.remove(executor, this);
        List.copyOf(members).forEach(Member::onLoopEnding);
        members.clear();
    }

    /** Netty's context, which must not block while turns are due. */
    private final class TurnContext implements IoHandlerContext {
        private @Nullable IoHandlerContext of;

        private IoHandlerContext of() {
            IoHandlerContext now = of;
            if (now == null) {
                throw new IllegalStateException("not running");
            }
            return now;
        }

        @Override
        public boolean canBlock() {
            return turns.isEmpty() && of().canBlock();
        }

        @Override
        public long delayNanos(long currentTimeNanos) {
            return timed == null ? of().delayNanos(currentTimeNanos) : canBlock() ? BLOCK_NANOS : 0;
        }

        @Override
        public long deadlineNanos() {
            return of().deadlineNanos();
        }

        @Override
        public void reportActiveIoTime(long nanos) {
            of().reportActiveIoTime(nanos);
        }

        @Override
        public boolean shouldReportActiveIoTime() {
            return of().shouldReportActiveIoTime();
        }
    }
}
