package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaClient;

/**
 * Directs an {@link RdmaClient}'s operations: to its connection, or, while it moves to another one, into a queue.
 *
 * <pre>{@code
 * OPEN --hold--> EMPTYING --the last caller has left--> HOLDING --release, and the queue is empty--> OPEN
 * }</pre>
 *
 * <p>Once the last caller has left, all operations begun before have been passed to the loop of the old connection, in
 * order, and none follows. Queued operations begin in order, on the loop of the connection to which they are released;
 * none overtakes another, since the queue stays open until it is empty. No callback runs under the lock.
 */
public final class Links {
    private static final Logger LOG = LoggerFactory.getLogger(Links.class);

    /** The lowest bit of {@code callers}. */
    private static final int CLOSED = 1;

    private static final int CALLER = 2;

    private final LongAdder lateReplies = new LongAdder();

    /** How many threads are beginning an operation, doubled, and whether further ones have to be held. */
    private final AtomicInteger callers = new AtomicInteger();

    private final Object lock = new Object();

    // Guarded by the lock.
    private @Nullable EventLoop holdingFor;
    private List<HeldOperation<?>> held = new ArrayList<>();

    // Written by the client's move, one change at a time; read by any thread.
    private volatile boolean moves;
    private volatile @Nullable Link link;
    private volatile Runnable onQuiet = () -> {};

    /**
     * Creates them, without a connection yet.
     *
     * @param moves whether the client may move
     */
    public Links(boolean moves) {
        this.moves = moves;
    }

    /** The first connection. */
    public void begin(Link first) {
        link = first;
    }

    /** The client keeps its connection from now on, and callers are no longer counted. */
    public void settle() {
        moves = false;
    }

    /** The connection that operations go to. */
    public Link link() {
        return Objects.requireNonNull(link, "connected");
    }

    /** Of all connections. */
    public LongAdder lateReplies() {
        return lateReplies;
    }

    public boolean isWritable() {
        return (callers.get() & CLOSED) == 0 && link().channel().isWritable();
    }

    // ---- operations

    /** Sends a handler's message to the peer of its connection. */
    Future<Void> send(Messenger from, @Nullable ByteBuf message) {
        return link == null // the client does not move before it has its first connection
                ? Operation.SEND.start(from, message, 0)
                : start(Operation.SEND, message, 0);
    }

    public <T> CompletableFuture<T> start(Operation<T> operation, byte @Nullable [] message, long timeoutNanos) {
        Messenger now = link().messenger();
        ByteBuf copy;
        try {
            copy = now.copy(message);
        } catch (RuntimeException | Error noMemory) {
            return now.completable(now.notifier().newFailedFuture(noMemory));
        }
        return now.completable(start(operation, copy, timeoutNanos));
    }

    public <T> CompletableFuture<T> start(Operation<T> operation, @Nullable ByteBuffer message, long timeoutNanos) {
        Messenger now = link().messenger();
        ByteBuf copy;
        try {
            copy = now.copy(message);
        } catch (RuntimeException | Error noMemory) {
            return now.completable(now.notifier().newFailedFuture(noMemory));
        }
        return now.completable(start(operation, copy, timeoutNanos));
    }

    /** Begins, now or when the client has moved. Takes ownership of the message. */
    public <T> Future<T> start(Operation<T> operation, @Nullable ByteBuf message, long timeoutNanos) {
        if (!moves) {
            return operation.start(link().messenger(), message, timeoutNanos);
        }
        while (true) {
            if (enter()) {
                try {
                    return operation.start(link().messenger(), message, timeoutNanos);
                } finally {
                    leave();
                }
            }
            synchronized (lock) {
                EventLoop loop = holdingFor;
                if (loop != null) {
                    HeldOperation<T> operationHeld = new HeldOperation<>(loop, operation, message, timeoutNanos);
                    held.add(operationHeld);
                    return operationHeld;
                }
            }
        }
    }

    private boolean enter() {
        int before = callers.get();
        while ((before & CLOSED) == 0) {
            if (callers.compareAndSet(before, before + CALLER)) {
                return true;
            }
            before = callers.get();
        }
        return false;
    }

    private void leave() {
        if (callers.addAndGet(-CALLER) == CLOSED) {
            onQuiet.run();
        }
    }

    // ---- called by the client's move

    /**
     * Holds operations from now on.
     *
     * @param loop on which futures of held operations complete
     * @param quiet run once, on any thread, when all earlier operations have been passed to the connection's loop
     */
    public void hold(EventLoop loop, Runnable quiet) {
        synchronized (lock) {
            holdingFor = loop;
        }
        onQuiet = quiet;
        if (callers.getAndUpdate(count -> count | CLOSED) == 0) {
            quiet.run();
        }
    }

    /**
     * Begins the held operations, and holds no more. Called after {@code quiet} has run.
     *
     * @param to the connection for them and for later ones
     * @param open run once, on that connection's loop, when nothing is held any more
     */
    public void release(Link to, Runnable open) {
        try {
            to.channel().eventLoop().execute(() -> release0(to, open));
        } catch (RejectedExecutionException ended) {
            LOG.debug("{}: the event loop has ended", to.channel(), ended);
            giveUp(to);
            open.run();
        }
    }

    /** Begins the operations that are queued now; later ones get another task, so that the loop can do other work. */
    private void release0(Link to, Runnable open) {
        List<HeldOperation<?>> batch = take(to, false);
        if (batch.isEmpty()) {
            open.run();
            return;
        }
        for (HeldOperation<?> operation : batch) {
            operation.start(to.messenger());
        }
        release(to, open);
    }

    /** The client can no longer move: fails held operations, and later ones go to a connection. */
    public void giveUp(Link to) {
        for (HeldOperation<?> operation : take(to, true)) {
            operation.giveUp(new ClosedChannelException());
        }
    }

    /** Takes the held operations; if there are none, or this is the last call, the queue ends. */
    private List<HeldOperation<?>> take(Link to, boolean last) {
        synchronized (lock) {
            List<HeldOperation<?>> batch = held;
            held = new ArrayList<>();
            if (holdingFor != null && (last || batch.isEmpty())) {
                holdingFor = null;
                link = to;
                callers.getAndUpdate(count -> count & ~CLOSED);
            }
            return batch;
        }
    }
}
