package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.Threads;
import org.verbena.transport.spi.LoopClock;

/**
 * Runs a connection's handler on virtual threads: each request on its own thread, unless the program wants them in
 * order; all other messages one after another, in order.
 */
public final class VirtualHandlers {
    private static final Logger LOG = LoggerFactory.getLogger(VirtualHandlers.class);

    /**
     * How many of a connection's messages may be in handlers or wait for one. At this limit the connection is not read
     * until half of them are done, so that slow handlers slow the client down, as on the loop. A virtual thread takes
     * about a KiB; what handlers keep is more.
     */
    public static final int MAX = 1024;

    private static final int FEW = MAX / 2;

    /** How many bytes these may have together: one message of the longest that a channel takes by default. */
    public static final long MAX_BYTES = 64L << 20;

    private static final long FEW_BYTES = MAX_BYTES / 2;

    private static final String NAME = "verbena-handler";

    /** Makes those that go by the system's clock without a builder for each. */
    private static final ThreadFactory THREADS = Thread.ofVirtual().name(NAME).factory();

    /** A message and the handlers of its connection. */
    record Work(VirtualHandlers owner, Incoming incoming, ByteBuf message, int bytes) implements Runnable {
        /** Counts the work when it begins or ceases to wait for its turn. */
        void countWaiting(int more) {
            owner.counters.countWaiting(more);
        }

        @Override
        public void run() {
            owner.run(this);
        }
    }

    private final Messenger messenger;
    private final @Nullable HandlerLimit limit;
    private final RequestCounters counters;
    private final boolean interruptsCancelled;

    /** Whether requests take their turn among the messages. */
    private final boolean ordersRequests;

    private final AtomicInteger unfinished = new AtomicInteger();

    /** The streams in handlers: these need the connection to be read, and are not among the unfinished messages. */
    private final AtomicInteger streams = new AtomicInteger();

    private final AtomicLong unfinishedBytes = new AtomicLong();
    private final Queue<Work> inOrder = new ConcurrentLinkedQueue<>();

    /**
     * How many are in the queue or were just taken from it. The thread that raises it to 1 starts the thread that
     * empties the queue.
     */
    private final AtomicInteger queued = new AtomicInteger();

    /** Event loop only. */
    private boolean full;

    VirtualHandlers(Messenger messenger, Serving serving) {
        this.messenger = messenger;
        limit = serving.limit();
        counters = serving.counters();
        interruptsCancelled = serving.interruptsCancelled();
        ordersRequests = serving.inOrder();
    }

    static void startThread(Work work) {
        work.owner.begin(work);
    }

    private void begin(Runnable task) {
        LoopClock clock = messenger.clock();
        try {
            (clock.isSystem() ? THREADS.newThread(task) : clock.newVirtualThread(NAME, task)).start();
        } catch (Throwable refused) { // the task is counted, so it has to run when there is memory
            Threads.startLater(clock, NAME, task, refused);
        }
    }

    /** Handles a message, of which it takes ownership. On the loop. */
    void start(Incoming incoming, ByteBuf message) {
        if (incoming.itemStream() != null) {
            startStream(incoming, message);
            return;
        }
        int bytes = message.readableBytes();
        boolean isLong = unfinishedBytes.addAndGet(bytes) >= MAX_BYTES;
        if (unfinished.incrementAndGet() >= MAX || isLong) {
            full = true;
            messenger.updateReading0();
        }
        Work work = new Work(this, incoming, message, bytes);
        if (incoming.isRequest() && !ordersRequests) {
            startNow(work);
            return;
        }
        inOrder.add(work);
        if (queued.getAndIncrement() == 0) {
            begin(this::runInOrder);
        }
    }

    private void startNow(Work work) {
        HandlerLimit bound = limit;
        if (bound == null) {
            startThread(work);
        } else if (!bound.start(work)) {
            work.message.release();
            messenger
                    .handlers()
                    .refuse(
                            work.incoming,
                            bound.longestWaitNanos(messenger.clock().nanoTime()));
            finished(work);
        }
    }

    /** Copies the message out of the connection's receive memory, since the handler of a stream may take long. */
    private void startStream(Incoming incoming, ByteBuf message) {
        ByteBuf copy;
        try {
            copy = Unpooled.wrappedBuffer(ByteBufUtil.getBytes(message));
        } finally {
            message.release();
        }
        streams.incrementAndGet();
        startNow(new Work(this, incoming, copy, copy.readableBytes()));
    }

    /** Whether another stream may begin; then it holds so many bytes. On the loop. */
    boolean takesStream0(int bytes) {
        return streams.get() < Streams.MAX && messenger.streams().tryHold(bytes);
    }

    /** Releases a request whose handler has not begun and shall not. Any thread. */
    void drop(Incoming request) {
        HandlerLimit bound = limit;
        Work waiting = bound == null ? null : bound.remove(request);
        if (waiting != null) {
            waiting.message.release();
            finished(waiting);
        }
    }

    private void runInOrder() {
        do {
            run(Objects.requireNonNull(inOrder.poll(), "queued counts what is in the queue"));
        } while (queued.decrementAndGet() > 0);
    }

    private void run(Work work) {
        work.incoming.setHandled(work.message);
        try {
            if (interruptsCancelled && work.incoming.isRequest()) {
                handleInterruptibly(work);
            } else {
                messenger.handlers().handle(work.incoming, work.message);
            }
        } finally {
            work.incoming.setHandled(null);
            HandlerLimit bound = limit;
            if (bound != null && work.incoming.isRequest()) {
                bound.ended();
            }
            finished(work);
        }
    }

    private void handleInterruptibly(Work work) {
        Interruption interruption = new Interruption();
        work.incoming.onCancel(interruption);
        try {
            messenger.handlers().handle(work.incoming, work.message);
        } finally {
            interruption.end();
        }
    }

    /** Interrupts the thread that made this, as long as the handler runs there. */
    private static final class Interruption implements Runnable {
        /** Guarded by this object. */
        private @Nullable Thread handler = Thread.currentThread();

        @Override
        public synchronized void run() {
            Thread running = handler;
            if (running != null) {
                running.interrupt();
            }
        }

        /** Interrupts nothing that the thread does from now on. */
        synchronized void end() {
            handler = null;
            Thread.interrupted();
        }
    }

    /** When both counts have fallen to half, the thread that finishes last sees it, and reading continues. */
    private void finished(Work work) {
        if (work.incoming.itemStream() != null) {
            messenger.streams().release(work.bytes);
            if (streams.decrementAndGet() == 0) {
                messenger.handlers().ended();
            }
            return;
        }
        int bytes = work.bytes;
        long leftBytes = unfinishedBytes.addAndGet(-bytes);
        boolean fell = leftBytes <= FEW_BYTES && leftBytes + bytes > FEW_BYTES;
        int left = unfinished.decrementAndGet();
        if ((left == FEW || fell) && areFew()) {
            resume();
        }
        if (left == 0) {
            messenger.handlers().ended();
        }
    }

    /** Whether no message is unfinished. Any thread. */
    boolean isIdle() {
        return unfinished.get() == 0 && streams.get() == 0;
    }

    private boolean areFew() {
        return unfinished.get() <= FEW && unfinishedBytes.get() <= FEW_BYTES;
    }

    private void resume() {
        try {
            messenger.channel().eventLoop().execute(messenger::updateReading0);
        } catch (RejectedExecutionException ended) {
            LOG.trace("{}: the event loop has ended, and nothing more is read", messenger.channel(), ended);
        }
    }

    /** Whether too many messages are unfinished to read more. On the loop. */
    boolean isFull0() {
        if (full && areFew()) {
            full = false;
        }
        return full;
    }
}
