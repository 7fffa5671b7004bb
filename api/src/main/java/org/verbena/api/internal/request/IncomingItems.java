package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.transport.ConnectionException;

/**
 * What an end of a stream has received and its program has not. The peer has credit for a window of messages and bytes;
 * it gets back what the program takes, when that is half of it. A message that is longer than what is left of the bytes
 * is sent nevertheless, and then the peer has less than none.
 *
 * <p>This object's lock is for the thread that waits for a message.
 */
final class IncomingItems implements Flow.Publisher<ByteBuf> {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    /** Fills the time until credit comes back on any network, with short messages and with long ones. */
    static final int WINDOW_MESSAGES = 256;

    static final int WINDOW_BYTES = 64 << 10;

    private final ItemStream stream;
    private final Queue<ByteBuf> arrived = new ConcurrentLinkedQueue<>();

    /** What the program has taken since the last credit. */
    private final AtomicLong takenMessages = new AtomicLong();

    private final AtomicLong takenBytes = new AtomicLong();

    /** How many messages the subscriber wants. */
    private final AtomicLong demand = new AtomicLong();

    /** Whether messages may come. */
    private volatile boolean accepted;

    /** Whether none follow. Written by the loop. */
    private volatile boolean peerEnded;

    /** Whether nobody wants what has arrived. */
    private volatile boolean discarded;

    /** Whether there is a subscriber, or will be. Guarded by this object. */
    private boolean claimed;

    private volatile Flow.@Nullable Subscriber<? super ByteBuf> subscriber;

    // Guarded by the queue.
    /** This stream's part of what all streams of the connection hold. */
    private long heldBytes;

    private boolean forgotten;

    /** Whether the subscriber knows the end. In turns. */
    private boolean completed;

    IncomingItems(ItemStream stream, boolean accepted) {
        this.stream = stream;
        this.accepted = accepted;
    }

    /** Returns whether it had not been accepted before. */
    boolean accept() {
        boolean first = !accepted;
        accepted = true;
        return first;
    }

    // ---- from the peer

    /** Takes the credit for a message; false if there is none. */
    boolean take0(ItemStream.Place here, int bytes) {
        if (peerEnded || here.grantedMessages == 0 || here.grantedBytes <= 0) {
            return false;
        }
        here.grantedMessages--;
        here.grantedBytes -= bytes;
        return true;
    }

    /** Keeps it for later; returns why it cannot. */
    @Nullable Throwable keep0(ByteBuf message) {
        if (!hold(message.readableBytes())) {
            return new ConnectionException("the streams of this connection hold more than " + Streams.MAX_BYTES
                    + " bytes that their programs have not read");
        }
        arrived.add(message);
        if (discarded) {
            arrived.clear();
        }
        return null;
    }

    /** Keeps one that has come without credit, and gives none back; returns why it cannot. */
    @Nullable Throwable first(ByteBuf message) {
        takenMessages.decrementAndGet();
        takenBytes.addAndGet(-message.readableBytes());
        return keep0(message);
    }

    /** Returns false if that was known. */
    boolean end0() {
        boolean first = !peerEnded;
        peerEnded = true;
        return first;
    }

    /** Whether the peer sends nothing more, having said so. */
    boolean hasPeerEnded() {
        return peerEnded;
    }

    private boolean hold(int bytes) {
        ItemStream.Place here = stream.place();
        synchronized (arrived) {
            if (forgotten || here == null) {
                return true;
            }
            if (!here.messenger().streams().tryHold(bytes)) {
                return false;
            }
            heldBytes += bytes;
            return true;
        }
    }

    private void release(int bytes) {
        ItemStream.Place here = stream.place();
        synchronized (arrived) {
            if (!forgotten && here != null) {
                heldBytes -= bytes;
                here.messenger().streams().release(bytes);
            }
        }
    }

    /** The stream is over: what the program does not read is no longer the connection's. Any thread. */
    void forget() {
        ItemStream.Place here = stream.place();
        synchronized (arrived) {
            if (!forgotten && here != null) {
                here.messenger().streams().release(heldBytes);
            }
            forgotten = true;
        }
    }

    // ---- turns

    void turn0(ItemStream.@Nullable Place here, boolean isOver) {
        Flow.Subscriber<? super ByteBuf> to = subscriber;
        if (to != null) {
            publish0(to);
        }
        if (here != null && !isOver && !peerEnded && accepted) {
            grant0(here);
        }
    }

    private void grant0(ItemStream.Place here) {
        long messages;
        long bytes;
        if (!here.opened) {
            here.opened = true;
            messages = WINDOW_MESSAGES;
            bytes = WINDOW_BYTES;
        } else if (isCreditDue()) {
            messages = takenMessages.getAndSet(0);
            bytes = takenBytes.getAndSet(0);
        } else {
            return;
        }
        here.grantedMessages += messages;
        here.grantedBytes += bytes;
        ByteBuf credit = Unpooled.buffer(Frames.CREDIT_BYTES).writeInt((int) messages);
        here.write0(Frames.ITEM_CREDIT, credit.writeInt((int) bytes));
        here.messenger().outgoing().flush();
    }

    private boolean isCreditDue() {
        return takenMessages.get() >= WINDOW_MESSAGES / 2 || takenBytes.get() >= WINDOW_BYTES / 2;
    }

    private void publish0(Flow.Subscriber<? super ByteBuf> to) {
        while (!completed) {
            boolean isLast = isEnded();
            ByteBuf next = demand.get() > 0 ? poll() : null;
            if (next == null) {
                if (isLast && arrived.isEmpty()) {
                    complete(to);
                }
                return;
            }
            taken(next.readableBytes());
            deliver(to, next);
        }
    }

    private void complete(Flow.Subscriber<? super ByteBuf> to) {
        completed = true;
        Throwable cause = failure();
        try {
            if (cause != null) {
                to.onError(cause);
            } else {
                to.onComplete();
            }
        } catch (Throwable thrown) {
            LOG.error("a subscriber of a stream has failed", thrown);
        }
    }

    /** Whether the subscriber wants a message that has just arrived before those that are kept. */
    boolean isAwaited0() {
        return subscriber != null && demand.get() > 0 && arrived.isEmpty() && !completed && !discarded;
    }

    /** Gives it one that is not kept. */
    void deliver0(ByteBuf message) {
        Flow.Subscriber<? super ByteBuf> to = subscriber;
        if (to == null) {
            message.release();
            return;
        }
        takenMessages.incrementAndGet();
        takenBytes.addAndGet(message.readableBytes());
        deliver(to, message);
    }

    private void deliver(Flow.Subscriber<? super ByteBuf> to, ByteBuf message) {
        demand.updateAndGet(left -> left == Long.MAX_VALUE ? left : left - 1);
        try {
            to.onNext(message);
        } catch (Throwable thrown) {
            LOG.error("a subscriber of a stream has failed", thrown);
            stream.cancel();
        }
    }

    // ---- the program

    /**
     * Takes the next message. What is left behind a discarded one, or arrives behind it, would look as if there were no
     * hole: so this looks afterwards, since the flag is set before the first message is discarded.
     */
    private @Nullable ByteBuf poll() {
        ByteBuf next = arrived.poll();
        return discarded ? null : next;
    }

    private void taken(int bytes) {
        release(bytes);
        takenMessages.incrementAndGet();
        takenBytes.addAndGet(bytes);
    }

    private boolean isEnded() {
        return peerEnded || stream.isOver();
    }

    /** Nobody wants what has arrived, nor what does. Any thread. */
    void discard() {
        discarded = true;
        arrived.clear(); // on the heap
    }

    boolean isSubscribed() {
        return subscriber != null;
    }

    @Nullable ByteBuf receive() throws InterruptedException {
        ByteBuf next = take();
        if (next != null) {
            taken(next.readableBytes());
            if (isCreditDue()) {
                stream.wake();
            }
        }
        return next;
    }

    /** Null at the end. */
    private synchronized @Nullable ByteBuf take() throws InterruptedException {
        if (claimed) {
            throw new IllegalStateException("a subscriber has the messages of this stream");
        }
        while (true) {
            boolean isLast = isEnded();
            ByteBuf next = poll();
            if (next != null) {
                return next;
            }
            if (isLast) {
                throwFailure();
                return null;
            }
            RdmaEventLoop.checkMayWait("receive", "subscribe to messages()");
            wait();
        }
    }

    /** Why the messages end here. One that was cancelled when it had just ended has lost some as well. */
    private @Nullable Throwable failure() {
        Throwable failure = stream.failure();
        return failure == null && discarded ? new CancellationException("the stream was cancelled") : failure;
    }

    private void throwFailure() {
        Throwable failure = failure();
        if (failure == null) {
            return;
        }
        switch (failure) {
            case RuntimeException cause -> throw cause;
            case Error cause -> throw cause;
            default -> throw new CompletionException(failure);
        }
    }

    @Override
    public void subscribe(Flow.Subscriber<? super ByteBuf> to) {
        boolean first;
        synchronized (this) {
            first = !claimed;
            claimed = true;
        }
        to.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long count) {
                if (first) {
                    want(count);
                }
            }

            @Override
            public void cancel() {
                if (first) {
                    stream.cancel();
                }
            }
        });
        if (first) {
            subscriber = to;
            stream.wake();
        } else {
            to.onError(new IllegalStateException("another subscriber has the messages of this stream"));
        }
    }

    private void want(long count) {
        if (count <= 0) {
            stream.breakOff(new IllegalArgumentException("a subscriber requested " + count + " messages"));
            return;
        }
        demand.updateAndGet(now -> now + count < 0 ? Long.MAX_VALUE : now + count);
        stream.wake();
    }
}
