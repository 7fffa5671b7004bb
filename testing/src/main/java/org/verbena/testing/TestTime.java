package org.verbena.testing;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.LoopClock;

/**
 * The time of clients and servers in a test. It stands still until the test moves it, so that a timeout of an hour
 * takes no time, and one of a millisecond does not pass by itself on a slow machine.
 *
 * <pre>{@code
 * TestTime time = new TestTime();
 * try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(time.provider(), 1);
 *         RdmaServer server = RdmaServer.builder().group(loops).bind("127.0.0.1", 0, handler);
 *         RdmaClient client = RdmaClient.builder().group(loops).connect("127.0.0.1", server.port())) {
 *     CompletableFuture<byte[]> reply = client.request(question, Duration.ofHours(1));
 *     time.advance(Duration.ofHours(1));
 *     assertTrue(reply.isCompletedExceptionally());
 * }
 * }</pre>
 *
 * <p><b>What goes by it.</b> The event loops that are made with {@link #provider()}, and the clients, servers and
 * channels on these loops: timeouts of requests, streams, connects and closes; what is left of a request's time in its
 * handler; keepalive and handshakes; the rungs of a ladder, and how long it remembers those that it passed over; waits
 * before a client connects again; hedges, retries, ejections, the age of connections, look-ups of names; {@code
 * RdmaServer.shutdown}; shedding of requests that have waited for long; and whatever a test or a handler schedules on
 * such a loop. Waits that are random, before a client connects again or repeats a request that was refused, are the
 * same in each run.
 *
 * <p><b>What does not.</b> {@code Thread.sleep} and other waits of the program's own threads, virtual threads of
 * handlers included; {@code orTimeout} and {@code completeOnTimeout} of the JDK's futures; clients and servers on other
 * loops, such as those that {@code provider("inprocess")} makes. Statistics and log lines measure the machine.
 *
 * <p><b>Order.</b> {@link #advance} moves from one deadline to the next. At each it waits until the loops have nothing
 * more to do, and the virtual threads of clients and handlers have ended or wait. So a timer that another one starts
 * runs in the same call, if it is due by then, and when the call returns, the futures that complete on a loop are
 * complete. It knows nothing of the test's own threads: what they are to do first, a test waits for.
 *
 * <p>{@code connect} waits as long as a healthy connection needs, for which no time passes. A call that waits for time
 * to pass, such as {@code join} on a request without an answer, waits until another thread moves the time. Only while
 * {@code close} of a client, a server or a group waits for a peer, time goes on by itself.
 *
 * <p>Any thread may call the methods, except where they say otherwise.
 */
public final class TestTime {
    /**
     * How long the loops may be busy, by the system's clock, before the test fails: far longer than a handler takes.
     */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);

    /** How often to look whether they still are. */
    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(20);

    /** One thread that was seen waiting may have been woken by another that was looked at after it. */
    private static final int LOOKS = 3;

    /** How often to look whether a wait is over for which no time need pass. */
    private static final long LOOK_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /** Where it begins: not at 0, which some take for "never". */
    private static final long BEGIN_NANOS = TimeUnit.DAYS.toNanos(1);

    private static final long NEVER = Long.MAX_VALUE;

    private final TestClock clock = new TestClock(this);
    private final InProcessProvider provider = new InProcessProvider(this);

    /** The virtual threads that have not ended. */
    private final Set<Thread> threads = ConcurrentHashMap.newKeySet();

    /** Held by the one who moves the time. */
    private final ReentrantLock mover = new ReentrantLock();

    /** Written under the lock of {@link #mover}. */
    private volatile long nanos = BEGIN_NANOS;

    // Guarded by this lock.
    private final Object lock = new Object();
    private final Set<Loop> loops = new LinkedHashSet<>();
    private final PriorityQueue<Alarm> alarms = new PriorityQueue<>();
    private long alarmsMade;
    private int working;

    /** Counts what ends a rest, so that one who looks at all of them one by one knows whether he saw one moment. */
    private long stirrings;

    /** Creates a time that nothing goes by yet. */
    public TestTime() {}

    /**
     * Returns the provider for event loops that go by this time: {@code new RdmaEventLoopGroup(time.provider(), 1)}. It
     * is the provider {@value InProcessProvider#NAME}, with the same ports and {@link Faults}.
     *
     * @return always the same
     */
    public InProcessProvider provider() {
        return provider;
    }

    /**
     * Returns how much time has passed.
     *
     * @return zero at first
     */
    public Duration elapsed() {
        return Duration.ofNanos(nanos - BEGIN_NANOS);
    }

    /**
     * Waits until all that can happen at this time has happened: what was sent has arrived, its handlers have returned,
     * replies are there.
     *
     * @throws IllegalStateException a loop or a virtual thread is busy for more than 30 s of the system's time; or it
     * is
     *     called on one of these, which would wait for itself
     */
    public void settle() {
        advance(Duration.ZERO);
    }

    /**
     * Lets time pass. Does what {@link #settle()} does, moves to the next deadline, does the same there, and so on.
     *
     * @param duration zero or more
     * @throws IllegalArgumentException it is negative
     * @throws IllegalStateException as {@link #settle()}
     */
    public void advance(Duration duration) {
        if (duration.isNegative()) {
            throw new IllegalArgumentException("time does not go back by " + duration);
        }
        checkThread();
        mover.lock();
        try {
            long untilNanos = saturated(TimeUnit.NANOSECONDS.convert(duration));
            awaitRest();
            while (step(untilNanos)) {
                awaitRest();
            }
            moveTo(untilNanos);
        } finally {
            mover.unlock();
        }
    }

    private long saturated(long delayNanos) {
        return Math.min(delayNanos, NEVER - 1 - nanos) + nanos;
    }

    private void checkThread() {
        Thread caller = Thread.currentThread();
        boolean own = threads.contains(caller);
        synchronized (lock) {
            own |= loops.stream().anyMatch(loop -> caller.equals(loop.thread));
        }
        if (own) {
            throw new IllegalStateException("time does not pass on " + caller.getName()
                    + ", which goes by it: let it pass on the test's thread");
        }
    }

    /** Moves to the next deadline; false if it is later than this. */
    private boolean step(long untilNanos) {
        List<Loop> due = new ArrayList<>();
        List<Alarm> ringing = new ArrayList<>();
        synchronized (lock) {
            long next = alarms.isEmpty() ? NEVER : alarms.element().atNanos;
            for (Loop loop : loops) {
                next = Math.min(next, loop.deadlineNanos);
            }
            if (next > untilNanos) {
                return false;
            }
            moveTo(next);
            for (Loop loop : loops) {
                if (loop.deadlineNanos <= next) {
                    due.add(loop);
                }
            }
            while (!alarms.isEmpty() && alarms.element().atNanos <= next) {
                ringing.add(alarms.remove());
            }
        }
        ringing.forEach(alarm -> newThread("verbena-timer", alarm).start());
        due.forEach(Loop::wake);
        return true;
    }

    private void moveTo(long toNanos) {
        synchronized (lock) {
            nanos = Math.max(nanos, toNanos);
            lock.notifyAll();
        }
    }

    // ---- rest

    private void awaitRest() {
        long beganNanos = System.nanoTime();
        while (!isAtRest()) {
            if (System.nanoTime() - beganNanos > PATIENCE_NANOS) {
                throw new IllegalStateException("time cannot pass, since there is more to do: " + busy());
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private boolean isAtRest() {
        long before;
        synchronized (lock) {
            if (working > 0) {
                return false;
            }
            before = stirrings;
        }
        for (int look = 0; look < LOOKS; look++) {
            if (look > 0) {
                LockSupport.parkNanos(LOOK_NANOS); // a thread that is just being woken runs before the next look
            }
            if (!allWait()) {
                return false;
            }
        }
        synchronized (lock) {
            return working == 0 && stirrings == before;
        }
    }

    /** A virtual thread that is woken runs, as far as its state says, before the one who wakes it goes on. */
    private boolean allWait() {
        return threads.stream().allMatch(TestTime::waits);
    }

    private static boolean waits(Thread thread) {
        return switch (thread.getState()) {
            case WAITING, TIMED_WAITING, TERMINATED -> true;
            case NEW, RUNNABLE, BLOCKED -> false;
        };
    }

    private String busy() {
        List<String> all = new ArrayList<>();
        synchronized (lock) {
            for (Loop loop : loops) {
                if (loop.works) {
                    all.add(describe(loop.thread));
                }
            }
        }
        threads.stream()
                .filter(thread -> !waits(thread))
                .map(TestTime::describe)
                .forEach(all::add);
        return String.join("; ", all);
    }

    private static String describe(@Nullable Thread thread) {
        if (thread == null) {
            return "a loop that has not begun";
        }
        StackTraceElement[] stack = thread.getStackTrace();
        return thread.getName() + (stack.length == 0 ? "" : " at " + stack[0]);
    }

    // ---- for the clock

    LoopClock clock() {
        return clock;
    }

    long nanos() {
        return nanos;
    }

    void sleep(long delayNanos) throws InterruptedException {
        long untilNanos = saturated(delayNanos);
        synchronized (lock) {
            while (nanos < untilNanos) {
                lock.wait();
            }
        }
    }

    Thread newThread(String name, Runnable task) {
        Thread made = Thread.ofVirtual().name(name).unstarted(() -> {
            try {
                task.run();
            } finally {
                threads.remove(Thread.currentThread());
            }
        });
        threads.add(made);
        synchronized (lock) {
            stirrings++;
        }
        return made;
    }

    Future<?> schedule(Runnable task, long delayNanos) {
        synchronized (lock) {
            Alarm made = new Alarm(task, saturated(Math.max(0, delayNanos)), alarmsMade++);
            alarms.add(made);
            return made;
        }
    }

    /** Time passes by itself while the caller waits, for as long as a test may take. */
    void passUntil(BooleanSupplier over) {
        long beganNanos = System.nanoTime();
        while (!over.getAsBoolean() && System.nanoTime() - beganNanos < PATIENCE_NANOS) {
            boolean moved = false;
            if (mover.tryLock()) {
                try {
                    moved = isAtRest() && !over.getAsBoolean() && step(NEVER - 1);
                } finally {
                    mover.unlock();
                }
            }
            LockSupport.parkNanos(moved ? LOOK_NANOS : LOOK_AGAIN_NANOS);
        }
    }

    private final class Alarm extends FutureTask<@Nullable Void> implements Comparable<Alarm> {
        final long atNanos;
        private final long number;

        Alarm(Runnable task, long atNanos, long number) {
            super(task, null);
            this.atNanos = atNanos;
            this.number = number;
        }

        @Override
        public int compareTo(Alarm other) {
            return atNanos == other.atNanos ? Long.compare(number, other.number) : Long.compare(atNanos, other.atNanos);
        }

        @Override
        protected void done() {
            if (isCancelled()) {
                synchronized (lock) {
                    alarms.remove(this);
                }
            }
        }
    }

    // ---- for loops

    /** A loop that goes by this time. */
    Loop enter(Runnable waker) {
        Loop made = new Loop(waker);
        synchronized (lock) {
            loops.add(made);
        }
        return made;
    }

    /** A loop: it works from when somebody wakes it until it has nothing more to do. */
    final class Loop {
        private final Runnable waker;

        // Guarded by the lock.
        private boolean works;
        private boolean over;
        private long deadlineNanos = NEVER;
        private @Nullable Thread thread;

        private Loop(Runnable waker) {
            this.waker = waker;
        }

        /** Notes that the loop may have work. Any thread. */
        void works() {
            synchronized (lock) {
                if (!works && !over) {
                    works = true;
                    working++;
                    stirrings++;
                }
            }
        }

        /**
         * It has no work, unless it gets some from now on. The loop's thread.
         *
         * @param delayNanos from a time to the next scheduled task, and the same for all times if there is none
         */
        void rests(LongUnaryOperator delayNanos) {
            synchronized (lock) {
                thread = Thread.currentThread();
                long before = delayNanos.applyAsLong(nanos - 1);
                deadlineNanos = before == delayNanos.applyAsLong(nanos) ? NEVER : nanos - 1 + before;
                if (works) {
                    works = false;
                    working--;
                }
            }
        }

        /** Removes the loop, which has ended. The loop's thread. */
        void ended() {
            synchronized (lock) {
                over = true;
                if (works) {
                    works = false;
                    working--;
                }
                loops.remove(this);
            }
        }

        private void wake() {
            works();
            waker.run();
        }
    }
}
