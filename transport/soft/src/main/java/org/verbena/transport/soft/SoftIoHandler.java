package org.verbena.transport.soft;

import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.IoOps;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoHandler;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.soft.uring.RingLoop;
import org.verbena.transport.soft.uring.SocketIo;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.PollCounters;
import org.verbena.transport.system.KnownSelectors;
import org.verbena.transport.system.Polling;

/**
 * What the connections of one loop share besides: the buffer that sockets are read into, the batches that they are
 * written from, and the ring that carries their streams, if there is one. With a ring, that is what the loop waits in,
 * and the selector never blocks. Not thread-safe; confined to the loop's thread.
 */
final class SoftIoHandler extends SoftwareIoHandler {
    private static final Logger LOG = LoggerFactory.getLogger(SoftIoHandler.class);

    /** How long a loop whose ring fails pauses, so that it neither ends nor fills the log. */
    private static final long REST_MILLIS = 1000;

    /** The most that one read of a socket takes, and so what one connection may do before others have their turn. */
    static final int READ_BYTES = 256 * 1024;

    /** Batches kept for the next write. */
    static final int MAX_IDLE_BATCHES = 4;

    private final SoftOptions options;
    private final TurnContext turnContext = new TurnContext();
    private final @Nullable RingLoop ring;
    private final ArrayDeque<TxBatch> idleBatches = new ArrayDeque<>();
    /** Batches that connections keep which have not flushed them. */
    private int filling;

    private final CRC32C crc = new CRC32C();
    private @Nullable ByteBuffer readBuffer;
    private @Nullable MemorySegment readSegment;
    /**
     * Made by the provider's factory.
     *
     * @param nio does the selecting
     * @param spinNanos as in {@link org.verbena.transport.CompletionLoopOptions#spinNanos()}
     * @param options of the provider
     * @param domain of the provider
     * @param counters of this loop
     */
    SoftIoHandler(
            IoHandler nio, long spinNanos, SoftOptions options, SoftwareDomain domain, PollCounters.Loop counters) {
        this(nio, null, spinNanos, options, domain, counters);
    }

    private SoftIoHandler(
            IoHandler nio,
            @Nullable Selector selector,
            long spinNanos,
            SoftOptions options,
            SoftwareDomain domain,
            PollCounters.Loop counters) {
        super(nio, spinNanos, domain, counters, options.sharedReceiveDepth(), options.stallTimeoutMillis());
        this.options = options;
        ring = selector == null ? null : newRing(selector);
    }

    private @Nullable RingLoop newRing(Selector selector) {
        try {
            return SocketIo.newLoop(selector, () -> super.select(Polling.CONTEXT));
        } catch (IOException e) {
            if (options.io() == SoftOptions.Io.IO_URING) {
                throw new UncheckedIOException("a loop gets no ring", e);
            }
            LOG.warn("a loop gets no ring, and uses NIO", e);
            return null;
        }
    }

    /**
     * A factory of handlers with rings.
     *
     * @param spinNanos as above
     * @param options of the provider
     * @param domain of the provider
     * @param counters of all loops
     * @return for Netty's group
     */
    static IoHandlerFactory withRings(
            long spinNanos, SoftOptions options, SoftwareDomain domain, PollCounters counters) {
        return new IoHandlerFactory() {
            @Override
            public IoHandler newHandler(ThreadAwareExecutor executor) {
                AtomicReference<Selector> opened = new AtomicReference<>();
                IoHandler nio = NioIoHandler.newFactory(new KnownSelectors(selector -> {
                            if (!opened.compareAndSet(null, selector)) {
                                throw new IOException("a ring waits for the selector that is there");
                            }
                        }))
                        .newHandler(executor);
                PollCounters.Loop ofLoop = counters.newLoop();
                try {
                    return new SoftIoHandler(nio, opened.get(), spinNanos, options, domain, ofLoop);
                } catch (RuntimeException | Error e) {
                    ofLoop.close();
                    nio.destroy();
                    throw e;
                }
            }

            // A ring belongs to one thread.
            @Override
            public boolean isChangingThreadSupported() {
                return false;
            }
        };
    }

    /** The ring that carries the streams of this loop; null if it has none. */
    @Nullable RingLoop ring() {
        return ring;
    }

    @Override
    protected void onLoopBegun() {
        if (ring != null) {
            ring.start();
        }
    }

    @Override
    protected int select(IoHandlerContext context) {
        if (ring == null) {
            return super.select(context);
        }
        try {
            return ring.turn(context);
        } catch (UncheckedIOException failure) {
            // Netty ends a loop whose handler throws, and with it all its connections.
            LOG.error("the ring of {} failed", Thread.currentThread().getName(), failure);
            try {
                TimeUnit.MILLISECONDS.sleep(REST_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return 0;
        }
    }

    @Override
    protected void onSelectorChanged() {
        if (ring != null) {
            ring.selectorChanged();
        }
    }

    @Override
    protected IoRegistration registered(IoRegistration made) {
        if (ring == null) {
            return made;
        }
        onSelectorChanged();
        return new Registration(made);
    }

    @Override
    public void wakeup() {
        if (ring == null) {
            super.wakeup();
        } else {
            ring.wakeup();
        }
    }

    @Override
    protected void onLoopEnded() {
        if (ring != null) {
            ring.close();
        }
    }

    /** A registration with the selector, whose changes take effect when it selects. */
    private final class Registration implements IoRegistration {
        private final IoRegistration with;

        Registration(IoRegistration with) {
            this.with = with;
        }

        @SuppressWarnings("TypeParameterUnusedInFormals") // Netty's
        @Override
        public <T> T attachment() {
            return with.attachment();
        }

        @Override
        public long submit(IoOps ops) {
            onSelectorChanged();
            return with.submit(ops);
        }

        @Override
        public boolean isValid() {
            return with.isValid();
        }

        @Override
        public boolean cancel() {
            onSelectorChanged();
            return with.cancel();
        }
    }

    @Override
    public int run(IoHandlerContext context) {
        turnContext.of = context;
        int handled = turnContext.canBlock() ? await() : select(turnContext);
        return handled + runTurns();
    }

    /** Nothing is left to do: waits for more. */
    private int await() {
        long start = System.nanoTime();
        turnContext.activeNanos = 0;
        int handled = spin(start);
        if (handled == 0) {
            counters.waits(start);
            handled = select(turnContext);
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
                int handled = select(turnContext);
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

    SoftOptions options() {
        return options;
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

    /**
     * An empty batch that was there, for a connection that keeps it until its flush, whenever that is: so there are no
     * more of these than are kept anyway.
     *
     * @return null if there is none; otherwise {@link #filled} follows
     */
    @Nullable TxBatch takeToFill() {
        TxBatch batch = filling < MAX_IDLE_BATCHES ? idleBatches.pollLast() : null;
        if (batch != null) {
            filling++;
        }
        return batch;
    }

    /** A batch that was {@linkplain #takeToFill taken to be filled} is being written, or comes back. */
    void filled() {
        filling--;
    }

    /** An empty batch. */
    TxBatch takeBatch() {
        TxBatch batch = idleBatches.pollLast();
        return batch == null ? new TxBatch() : batch;
    }

    /**
     * Takes a batch back.
     *
     * @param batch not used any more
     */
    void returnBatch(TxBatch batch) {
        batch.reset();
        if (idleBatches.size() < MAX_IDLE_BATCHES) {
            idleBatches.addLast(batch);
        }
    }
}
