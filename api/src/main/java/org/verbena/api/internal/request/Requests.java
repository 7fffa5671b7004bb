package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.util.collection.LongObjectHashMap;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.RequestException;

/**
 * A connection's requests, from the call to the outcome: the reply, a failure, the timeout, or the connection's end.
 */
public final class Requests {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    /** Times that are further apart could not be compared. */
    private static final long MAX_TIMEOUT_NANOS = Long.MAX_VALUE >> 1;

    private final Messenger messenger;
    private final Channel channel;
    private final SendLimit limit;

    /** Determines which requests are sent again; null for none. */
    private final @Nullable Retries retries;

    private final LongAdder lateReplies;

    // Confined to the event loop.
    private final LongObjectHashMap<Request<?>> pending = new LongObjectHashMap<>();
    private long lastCorrelation;
    private boolean inactive;

    /** Whether the connection ends with its last request. */
    private boolean leaving;

    private @Nullable Future<?> sweep;
    private long sweepNanos;

    Requests(Messenger messenger, @Nullable Retries retries, LongAdder lateReplies, SendLimit limit) {
        this.messenger = messenger;
        channel = messenger.channel();
        this.retries = retries;
        this.lateReplies = lateReplies;
        this.limit = limit;
    }

    Future<ByteBuf> request(@Nullable ByteBuf message, long timeoutNanos) {
        return start(new Request<>(message, timeoutNanos) {
            @Override
            void answer0(ByteBuf reply) {
                if (!trySuccess(reply)) {
                    lateReplies.increment();
                    reply.release();
                }
            }
        });
    }

    Future<byte[]> requestBytes(@Nullable ByteBuf message, long timeoutNanos) {
        return start(new CopyingRequest<byte[]>(message, timeoutNanos) {
            @Override
            byte[] of(byte[] reply) {
                return reply;
            }
        });
    }

    Future<ByteBuffer> requestBuffer(@Nullable ByteBuf message, long timeoutNanos) {
        return start(new CopyingRequest<ByteBuffer>(message, timeoutNanos) {
            @Override
            ByteBuffer of(byte[] reply) {
                return ByteBuffer.wrap(reply);
            }
        });
    }

    /**
     * Done when the server has handled the messages that were sent before; requests may still wait for their replies.
     */
    Future<byte[]> fence(long timeoutNanos) {
        return start(new CopyingRequest<byte[]>(Unpooled.EMPTY_BUFFER, timeoutNanos) {
            @Override
            Future<Void> post0(ByteBuf payload, long timeNanos) {
                return messenger.peerTakes0(Messenger.TAKES_FENCES)
                        ? messenger.send(Messenger.FENCE, correlation(), payload)
                        : channel.newFailedFuture(
                                new UnsupportedOperationException("the server is of a release without fences"));
            }

            @Override
            byte[] of(byte[] reply) {
                return reply;
            }
        });
    }

    /** Makes the server close the connection when the last request has completed. No request may follow. Any thread. */
    void leave() {
        try {
            channel.eventLoop().execute(() -> {
                leaving = true;
                leaveIfIdle0();
            });
        } catch (RejectedExecutionException ended) {
            LOG.trace("{}: the event loop has ended, and closed it", channel, ended);
        }
    }

    private void leaveIfIdle0() {
        if (!leaving || !pending.isEmpty() || inactive) {
            return;
        }
        leaving = false;
        messenger.send(Messenger.LEAVE, 0, Unpooled.EMPTY_BUFFER);
        // A server that does not close in time is closed from here, as a connection without a fence is.
        Future<?> limit =
                channel.eventLoop().schedule(() -> channel.close(), ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS);
        channel.closeFuture().addListener(closed -> limit.cancel(false));
    }

    private <T> Future<T> start(Request<T> request) {
        try {
            Messenger.checkUsable(request.message);
        } catch (RuntimeException cause) {
            request.tryFailure(cause);
            return request;
        }
        if (!limit.tryTake(request.bytes)) {
            request.drop(limit.refusal("request", channel.remoteAddress(), request.bytes));
            return request;
        }
        if (channel.eventLoop().inEventLoop()) {
            request.run();
        } else {
            try {
                channel.eventLoop().execute(request);
            } catch (RejectedExecutionException ended) {
                request.giveUp(messenger.closed("request", ended));
            }
        }
        return request;
    }

    /**
     * A request, which is the promise of its reply. The channel owns the message from the start, so cancelling the
     * request releases nothing early.
     */
    private abstract class Request<T> extends DefaultPromise<T> implements Runnable {
        private final @Nullable ByteBuf message;
        private final int bytes;
        private final long timeoutNanos;
        private long correlation;
        private long beganNanos;
        private long deadlineNanos;
        /** The message, while it may have to be sent again. */
        private @Nullable ByteBuf kept;

        private int sentAgain;

        Request(@Nullable ByteBuf message, long timeoutNanos) {
            super(messenger.notifier());
            this.message = message;
            bytes = message == null ? 0 : message.readableBytes();
            this.timeoutNanos = timeoutNanos;
        }

        /** Completes the request with the reply, which it now owns. */
        abstract void answer0(ByteBuf reply);

        /** Fails before anything is sent. */
        private void giveUp(Throwable cause) {
            limit.giveBack(bytes);
            drop(cause);
        }

        private void drop(Throwable cause) {
            if (message != null) {
                message.release();
            }
            tryFailure(cause);
        }

        @Override
        protected void checkDeadLock() {
            RdmaEventLoop.checkMayWait(executor());
        }

        @Override
        public void run() {
            if (message == null || isDone()) {
                giveUp(new CancellationException("cancelled before it began"));
                return;
            }
            if (inactive) {
                giveUp(messenger.closed("request", new ClosedChannelException()));
                return;
            }
            number0();
            long now = System.nanoTime();
            beganNanos = now;
            deadlineNanos = now + Math.min(timeoutNanos, MAX_TIMEOUT_NANOS);
            sweepBy0(deadlineNanos, now);
            if (retries != null) {
                kept = message.retainedDuplicate();
            }
            send0(message, timeoutNanos);
        }

        private void number0() {
            correlation = ++lastCorrelation & Messenger.CORRELATION_MASK;
            pending.put(correlation, this);
        }

        final long correlation() {
            return correlation;
        }

        Future<Void> post0(ByteBuf payload, long timeNanos) {
            return messenger.peerTakes0(Messenger.TAKES_TIMED_REQUESTS)
                    ? messenger.sendTimed(Messenger.TIMED_REQUEST, correlation, timeNanos, payload)
                    : messenger.send(Messenger.REQUEST, correlation, payload);
        }

        /** Sends it, once it counts against the limit. */
        private void send0(ByteBuf payload, long timeNanos) {
            post0(payload, timeNanos).addListener(sent -> {
                limit.giveBack(bytes);
                if (!sent.isSuccess()) {
                    forget0();
                    tryFailure(sent.cause());
                }
            });
        }

        private void timeOut0() {
            forget0();
            tryFailure(new RequestException.TimedOut("request to " + channel.remoteAddress() + ": no reply within "
                    + Messenger.inMillis(timeoutNanos) + " ms; the peer may still be working on it"));
        }

        void forget0() {
            pending.remove(correlation);
            if (kept != null) {
                kept.release();
                kept = null;
            }
            leaveIfIdle0();
        }

        /**
         * The server has refused it. If it may be sent again within its time, sends it with a new number, under which
         * it waits for its reply from now on, so that it ends with its time or with the connection.
         */
        boolean sendsAgain0(long hintNanos) {
            if (retries == null || kept == null || isDone()) {
                return false;
            }
            long delayNanos = Retries.delayNanos(hintNanos, sentAgain);
            if (System.nanoTime() + delayNanos - deadlineNanos >= 0 || !retries.tryTake(sentAgain)) {
                return false;
            }
            sentAgain++;
            pending.remove(correlation);
            number0();
            channel.eventLoop().schedule(this::sendAgain0, delayNanos, TimeUnit.NANOSECONDS);
            return true;
        }

        private void sendAgain0() {
            ByteBuf payload = kept;
            if (payload != null) { // else it has completed
                limit.take(bytes);
                send0(payload.retainedDuplicate(), Math.max(0, deadlineNanos - System.nanoTime()));
            }
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            boolean cancelled = super.cancel(mayInterruptIfRunning);
            if (cancelled) {
                try {
                    channel.eventLoop().execute(this::forget0);
                } catch (RejectedExecutionException ended) {
                    LOG.trace("{}: the event loop has ended, and its requests were dropped", channel, ended);
                }
            }
            return cancelled;
        }
    }

    /** A request whose reply is copied from its Netty buffer. */
    private abstract class CopyingRequest<T> extends Request<T> {
        CopyingRequest(@Nullable ByteBuf message, long timeoutNanos) {
            super(message, timeoutNanos);
        }

        /** Converts the reply to the caller's type. */
        abstract T of(byte[] reply);

        @Override
        void answer0(ByteBuf reply) {
            byte[] bytes = ByteBufUtil.getBytes(reply);
            reply.release();
            if (!trySuccess(of(bytes))) {
                lateReplies.increment();
            }
        }
    }

    /**
     * Makes sure that {@link #sweep0} runs no later than a given time. One task serves all requests, since nearly all
     * are answered long before their timeout.
     */
    private void sweepBy0(long deadlineNanos, long nowNanos) {
        Future<?> scheduled = sweep;
        if (scheduled != null) {
            if (deadlineNanos - sweepNanos >= 0) {
                return;
            }
            scheduled.cancel(false);
        }
        sweepNanos = deadlineNanos;
        sweep = channel.eventLoop().schedule(this::sweep0, deadlineNanos - nowNanos, TimeUnit.NANOSECONDS);
    }

    /** Fails the requests that have timed out. */
    private void sweep0() {
        sweep = null;
        long now = System.nanoTime();
        List<Request<?>> late = new ArrayList<>();
        long leastLeftNanos = Long.MAX_VALUE;
        for (Request<?> request : pending.values()) {
            long leftNanos = request.deadlineNanos - now;
            if (leftNanos <= 0) {
                late.add(request);
            } else {
                leastLeftNanos = Math.min(leastLeftNanos, leftNanos);
            }
        }
        if (leastLeftNanos < Long.MAX_VALUE) {
            sweepBy0(now + leastLeftNanos, now);
        }
        for (Request<?> request : late) {
            request.timeOut0();
        }
    }

    // ---- outcomes

    /**
     * Removes and returns the request of an answer; if it has already completed, returns null and releases the answer.
     */
    private @Nullable Request<?> answeredBy0(long correlation, ByteBuf answer, long arrivedNanos) {
        Request<?> request = awaiting0(correlation, answer);
        if (request != null) {
            if (retries != null) {
                retries.answered();
            }
            request.forget0();
            ConnectionStat stat = messenger.stat();
            if (stat != null) {
                stat.answered0(arrivedNanos - request.beganNanos);
            }
        }
        return request;
    }

    private @Nullable Request<?> awaiting0(long correlation, ByteBuf answer) {
        Request<?> request = pending.get(correlation);
        if (request == null) {
            lateReplies.increment();
            answer.release();
        }
        return request;
    }

    /** The reply has arrived; takes ownership of it. */
    void answered0(long correlation, ByteBuf reply, long arrivedNanos) {
        Request<?> request = answeredBy0(correlation, reply, arrivedNanos);
        if (request != null) {
            request.answer0(reply);
        }
    }

    /** The peer's handler has failed; the text gives the reason, if the peer sent it. */
    void failed0(long correlation, ByteBuf words, long arrivedNanos) {
        Request<?> request = answeredBy0(correlation, words, arrivedNanos);
        if (request != null) {
            String text = words.toString(StandardCharsets.UTF_8);
            words.release();
            request.tryFailure(new RequestException.Failed("request to " + channel.remoteAddress()
                    + ": the peer's handler failed" + (text.isEmpty() ? "; the peer's log says why" : ": " + text)));
        }
    }

    /** The server has not begun with it. */
    void refused0(long correlation, long retryNanos, ByteBuf frame) {
        Request<?> request = awaiting0(correlation, frame);
        if (request == null) {
            return;
        }
        frame.release();
        if (!request.sendsAgain0(retryNanos)) {
            request.forget0();
            request.tryFailure(new RequestException.Overloaded(
                    "request to " + channel.remoteAddress() + ": the server is overloaded and did not begin with it;"
                            + " try again in " + Messenger.inMillis(retryNanos) + " ms",
                    Duration.ofNanos(retryNanos)));
        }
    }

    /** The connection has ended. */
    void end0() {
        inactive = true;
        Future<?> scheduled = sweep;
        if (scheduled != null) {
            scheduled.cancel(false);
            sweep = null;
        }
        Throwable cause = messenger.firstCause();
        for (Request<?> request : new ArrayList<>(pending.values())) {
            request.forget0();
            request.tryFailure(cause == null ? messenger.closed("request", new ClosedChannelException()) : cause);
        }
    }
}
