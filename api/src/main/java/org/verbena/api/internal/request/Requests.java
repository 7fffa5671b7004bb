package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.FutureListener;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.channel.DeferredMessage;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.spi.LoopClock;

/**
 * A connection's requests, from the call to the outcome: the reply, a failure, the timeout, or the connection's end.
 */
public final class Requests {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    /** Times that are further apart could not be compared. */
    private static final long MAX_TIMEOUT_NANOS = Long.MAX_VALUE >> 1;

    /** After this many requests in a row without a reply the server, and not a request, is taken to be slow. */
    private static final int MAX_UNANSWERED = 5;

    /** The server has not asked its clients to leave. */
    private static final long NOT_ASKED = -1;

    private final Messenger messenger;
    private final Channel channel;
    private final SendLimit limit;

    /** How many may wait for their replies. */
    private final int max;

    private final LongAdder lateReplies;

    // Confined to the event loop.
    private final RecentFailures failures = new RecentFailures();
    private final Latency latency = new Latency();
    private final CorrelationMap<Request<?>> pending = new CorrelationMap<>();
    private final LoopClock clock;
    private long lastCorrelation;
    private boolean inactive;

    private boolean left;

    /** How many requests in a row had no reply in time. */
    private int unanswered;

    /** When the last answer has arrived. */
    private long answeredNanos;

    /** The size of {@code pending}, for other threads, which may see it late. Written by the loop. */
    private final AtomicInteger load = new AtomicInteger();

    private @Nullable Future<?> sweep;
    private long sweepNanos;

    /** Whether the connection takes nothing more, and ends with its last request. Written by {@link #leave}. */
    private volatile boolean leaving;

    // Written by the loop, read by any thread.
    /** After which time the server may be connected to again, once it has asked its clients to leave. */
    private volatile long leavingNanos = NOT_ASKED;

    /** Whether there was a request, and no answer to any. */
    private volatile boolean unproven;

    Requests(Messenger messenger, LongAdder lateReplies, SendLimit limit, int max) {
        this.messenger = messenger;
        channel = messenger.channel();
        clock = messenger.clock();
        this.lateReplies = lateReplies;
        this.limit = limit;
        this.max = max;
    }

    Future<ByteBuf> request(@Nullable ByteBuf message, long timeoutNanos, boolean hasFullTimeout, boolean mayRedirect) {
        return start(new Request<>(message, timeoutNanos, hasFullTimeout, mayRedirect) {
            @Override
            Operation<ByteBuf> operation() {
                return Operation.REQUEST;
            }

            @Override
            void answer0(ByteBuf reply) {
                if (!trySuccess(reply)) {
                    late();
                    reply.release();
                }
            }
        });
    }

    Future<byte[]> requestBytes(
            @Nullable ByteBuf message, long timeoutNanos, boolean hasFullTimeout, boolean mayRedirect) {
        return start(new CopyingRequest<>(
                message, timeoutNanos, hasFullTimeout, mayRedirect, Operation.REQUEST_BYTES, reply -> reply));
    }

    Future<ByteBuffer> requestBuffer(
            @Nullable ByteBuf message, long timeoutNanos, boolean hasFullTimeout, boolean mayRedirect) {
        return start(new CopyingRequest<>(
                message, timeoutNanos, hasFullTimeout, mayRedirect, Operation.REQUEST_BUFFER, ByteBuffer::wrap));
    }

    <T> Future<T> headed(
            @Nullable ByteBuf message,
            long timeoutNanos,
            boolean hasFullTimeout,
            boolean mayRedirect,
            HeadedOperation<T> operation) {
        return start(new HeadedRequest<>(message, timeoutNanos, hasFullTimeout, mayRedirect, operation));
    }

    /** Begins a stream. */
    Future<Void> stream(
            @Nullable ByteBuf message,
            long timeoutNanos,
            boolean hasFullTimeout,
            boolean mayRedirect,
            StreamOperation operation) {
        return start(new StreamRequest(message, timeoutNanos, hasFullTimeout, mayRedirect, operation));
    }

    /** How many requests are sent and have no reply yet. Any thread. */
    int load() {
        return load.getOpaque();
    }

    /** How many have failed lately, as far as they count now. Any thread. */
    int recentFailures() {
        return failures.isNone() ? 0 : failures.count(clock.nanoTime());
    }

    /** Within which time nearly all replies come; 0 while there was none. Any thread. */
    long replyNanos() {
        return latency.firstEstimateNanos();
    }

    /** Gives up a request that another connection has answered sooner: that says nothing of this one. Any thread. */
    void abandon(Future<?> request) {
        if (request instanceof Request<?> own) {
            own.abandon();
        } else {
            request.cancel(false);
        }
    }

    private void count0() {
        load.setOpaque(pending.size());
    }

    /**
     * Begins nothing further, and ends the connection when all that it has taken is done. That includes the messages
     * that count against the limit: a thread that has counted its message before it asks {@link #isLeaving} either
     * learns that it has to go elsewhere, or is waited for. Any thread.
     */
    void leave() {
        leaving = true;
        onLoop(this::leaveIfIdle0);
    }

    /** Whether messages have to go elsewhere. Any thread, which has counted its message by then. */
    boolean isLeaving() {
        return leaving;
    }

    /** Whether the server was asked to close the connection: it reads nothing behind that. */
    boolean hasLeft0() {
        return left;
    }

    /** Counts a message no more. Any thread. */
    void giveBack(int bytes) {
        limit.giveBack(bytes);
        if (leaving) {
            onLoop(this::leaveIfIdle0);
        }
    }

    private void onLoop(Runnable step) {
        try {
            channel.eventLoop().execute(step);
        } catch (RejectedExecutionException ended) {
            LOG.trace("{}: the event loop has ended, and its requests were dropped", channel, ended);
        }
    }

    /** Whether it begins nothing more. If the peer has closed it, the client learns so now. */
    private boolean isClosed0() {
        if (messenger.hasPeerClosed0()) {
            serverLeaves0(0, "it has closed the connection");
        }
        return inactive || !messenger.isUsable();
    }

    /** Asks the server to close, so that all that it has sent arrives, or closes here if the server cannot. */
    private void leaveIfIdle0() {
        if (!leaving || left || !pending.isEmpty() || limit.messages() > 0 || inactive) {
            return;
        }
        left = true;
        messenger.outgoing().send(Frames.LEAVE, 0, Unpooled.EMPTY_BUFFER);
        Future<?> wait =
                channel.eventLoop().schedule(() -> channel.close(), ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS);
        channel.closeFuture().addListener(closed -> wait.cancel(false));
    }

    /** After which time the server, which is leaving, may be connected to again; negative if it is not. Any thread. */
    long leavingNanos() {
        return leavingNanos;
    }

    /** Whether there was a request, and no answer to any. Any thread. */
    boolean isUnproven() {
        return unproven;
    }

    /** A request was given up, since another connection has answered it sooner. Any thread. */
    void countUnanswered() {
        onLoop(this::countUnanswered0);
    }

    private <T> Future<T> start(Request<T> request) {
        try {
            Messenger.checkUsable(request.message);
        } catch (RuntimeException cause) {
            request.tryFailure(cause);
            return request;
        }
        if (!limit.tryTake(request.bytes)) {
            ReferenceCountUtil.safeRelease(request.message);
            request.tryFailure(limit.refusal("request", channel.remoteAddress(), request.bytes));
            return request;
        }
        if (channel.eventLoop().inEventLoop()) {
            request.run();
            return request;
        }
        try {
            channel.eventLoop().execute(request);
        } catch (RejectedExecutionException ended) {
            request.notBegun(messenger.closed("request", ended), request.timeoutNanos);
        } catch (Error noMemory) {
            request.drop(noMemory);
        }
        return request;
    }

    /**
     * A request, which is the promise of its reply, listens to its own send, and is what it writes to the channel: it
     * keeps its message until that is sent, so that it can be given up, or go to another connection, until its turn
     * comes.
     *
     * <pre>{@code
     * WAITING --its turn--> HANDED OVER --sent--> ASKED --answer--> over
     *    |                       |
     *    |                       +--a closed connection has not taken it--> elsewhere
     *    +--given up: nothing is sent--> over
     * }</pre>
     */
    private abstract class Request<T> extends DefaultPromise<T>
            implements Runnable, FutureListener<Void>, DeferredMessage {
        /** Owned and counted against the limit until it is sent, then null. Its starter has it first, then the loop. */
        private @Nullable ByteBuf message;

        /** What counts against the limit. */
        private final int bytes;

        private final long timeoutNanos;

        /** Whether the server has had its time when there is no reply by then. */
        private final boolean hasFullTimeout;

        private final boolean mayRedirect;

        /** Whether its turn has come: the server may begin it from then on. */
        private boolean handedOver;

        private long correlation;
        private long beganNanos;
        private long deadlineNanos;

        Request(@Nullable ByteBuf message, long timeoutNanos, boolean hasFullTimeout, boolean mayRedirect) {
            this(message, 0, timeoutNanos, hasFullTimeout, mayRedirect);
        }

        Request(
                @Nullable ByteBuf message,
                int headersBytes,
                long timeoutNanos,
                boolean hasFullTimeout,
                boolean mayRedirect) {
            super(messenger.notifier());
            this.message = message;
            bytes = headersBytes + (message == null ? 0 : message.readableBytes());
            this.timeoutNanos = timeoutNanos;
            this.hasFullTimeout = hasFullTimeout;
            this.mayRedirect = mayRedirect;
        }

        /** What started it. */
        abstract Operation<T> operation();

        /** Completes the request with the reply, which it now owns. */
        abstract void answer0(ByteBuf reply);

        /** As {@link #answer0(ByteBuf)}, of a reply with headers, which few requests want. */
        void answer0(Headers headers, ByteBuf reply) {
            answer0(reply);
        }

        /** This connection cannot begin it: another one of its client does, or it fails. */
        private void notBegun(Throwable cause, long leftNanos) {
            ClientTransport.Owner owner = messenger.owner();
            ByteBuf held = message;
            if (mayRedirect
                    && owner != null
                    && held != null
                    && owner.goOn(this, operation(), Frames.unframed(held), leftNanos, hasFullTimeout)) {
                message = null;
                giveBack(bytes);
            } else {
                drop(cause);
            }
        }

        /** Fails, and needs neither memory nor room any more. */
        private void drop(Throwable cause) {
            settle();
            tryFailure(cause);
        }

        private void settle() {
            ByteBuf held = message;
            if (held != null) {
                message = null;
                held.release();
                giveBack(bytes);
            }
        }

        @Override
        protected void checkDeadLock() {
            RdmaEventLoop.checkMayWait(executor());
        }

        @Override
        public void run() {
            try {
                begin0();
            } catch (Throwable thrown) { // for want of memory
                forget0();
                drop(thrown);
            }
        }

        private void begin0() {
            if (isDone()) {
                settle();
                return;
            }
            if (isClosed0()) {
                notBegun(messenger.closed("request", new ClosedChannelException()), timeoutNanos);
                return;
            }
            if (pending.size() >= max) {
                drop(limitReached());
                return;
            }
            number0();
            long now = clock.nanoTime();
            beganNanos = now;
            deadlineNanos = now + Math.min(lengthNanos(), MAX_TIMEOUT_NANOS);
            sweepBy0(deadlineNanos, now);
            send0().addListener(this);
        }

        /** How long the reply may take once the request is sent. */
        long lengthNanos() {
            return timeoutNanos;
        }

        private SendLimitException limitReached() {
            return new SendLimitException(
                    "request to " + channel.remoteAddress() + ": " + max
                            + " requests wait for their replies, which is all that maxRequests allows: wait for an"
                            + " earlier one, or raise maxRequests",
                    max,
                    0);
        }

        long correlation() {
            return correlation;
        }

        private void number0() {
            if (lastCorrelation == 0) {
                unproven = true;
            }
            correlation = ++lastCorrelation & Frames.CORRELATION_MASK;
            pending.put(correlation, this);
            count0();
        }

        /** What goes with it. */
        Headers headers() {
            return Headers.NONE;
        }

        Future<Void> send0() {
            return messenger.outgoing().request(this, headers());
        }

        @Override
        public ByteBuf content() {
            ByteBuf held = message;
            return held == null ? Unpooled.EMPTY_BUFFER : held;
        }

        @Override
        public @Nullable ByteBuf make0(ByteBufAllocator allocator) {
            ByteBuf held = message;
            if (held == null || isDone()) {
                return null;
            }
            ByteBuf lent = held.retain();
            try {
                ByteBuf frame = frame0(allocator, Frames.micros(leftNanos()), lent);
                handedOver = true;
                return frame;
            } catch (Throwable noMemory) {
                lent.release();
                throw noMemory;
            }
        }

        /** Makes the frame, and takes ownership of the payload unless it throws. */
        ByteBuf frame0(ByteBufAllocator allocator, long timeMicros, ByteBuf payload) {
            return Frames.of(allocator, Frames.TIMED_REQUEST, correlation, timeMicros, payload);
        }

        private long leftNanos() {
            return Math.max(1, deadlineNanos - clock.nanoTime());
        }

        /** It has been sent, or could not be. */
        @Override
        public void operationComplete(Future<Void> sent) {
            if (sent.isSuccess()) {
                settle();
                return;
            }
            Throwable cause = sent.cause();
            boolean waits = forget0();
            if (waits && isMovable() && (!handedOver || cause instanceof ConnectionException.NotDone) && isClosed0()) {
                notBegun(messenger.closed("request", cause), leftNanos());
            } else {
                drop(SendFailures.refusesOnlyIt(cause) ? cause : SendFailures.begun(channel, cause));
            }
        }

        /** Whether another connection can begin it, once this one has tried to send it. */
        boolean isMovable() {
            return true;
        }

        /** Nobody waits for what has arrived. */
        void late() {
            lateReplies.increment();
        }

        private void timeOut0() {
            giveUp0();
            if (hasFullTimeout) {
                countUnanswered0();
            }
            tryFailure(new RequestException.TimedOut("request to " + channel.remoteAddress() + ": no reply within "
                    + Messenger.inMillis(timeoutNanos) + " ms; "
                    + (handedOver ? "the peer may still be working on it" : "it was not sent by then")));
        }

        /**
         * The program waits no more. That says something of the server only if it has been silent since, longer than
         * others are.
         */
        private void cancelled0() {
            ClientTransport.Owner owner = messenger.owner();
            long nanos = clock.nanoTime() - beganNanos;
            if (owner != null
                    && pending.get(correlation) != null
                    && answeredNanos - beganNanos < 0
                    && owner.othersAnswerWithin(nanos, messenger)) {
                countUnanswered0();
            }
            giveUp0();
        }

        void abandon() {
            if (super.cancel(false)) {
                onLoop(this::giveUp0);
            }
        }

        /** Nobody waits for the reply: the server need not begin the request, or finish it. */
        void giveUp0() {
            boolean waits = forget0();
            if (!handedOver) {
                settle();
            } else if (waits && !inactive) {
                messenger.outgoing().send(Frames.CANCEL, correlation, Unpooled.EMPTY_BUFFER);
            }
        }

        /** Forgets the request. Returns whether this connection had it. */
        boolean forget0() {
            boolean waits = pending.remove(correlation) != null;
            if (waits) {
                count0();
                leaveIfIdle0();
            }
            return waits;
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            boolean cancelled = super.cancel(mayInterruptIfRunning);
            if (cancelled) {
                onLoop(this::cancelled0);
            }
            return cancelled;
        }
    }

    /** A request whose reply is copied from its Netty buffer. */
    private final class CopyingRequest<T> extends Request<T> {
        private final Operation<T> operation;

        /** Converts the reply to the caller's type. */
        private final Function<byte[], T> of;

        CopyingRequest(
                @Nullable ByteBuf message,
                long timeoutNanos,
                boolean hasFullTimeout,
                boolean mayRedirect,
                Operation<T> operation,
                Function<byte[], T> of) {
            super(message, timeoutNanos, hasFullTimeout, mayRedirect);
            this.operation = operation;
            this.of = of;
        }

        @Override
        Operation<T> operation() {
            return operation;
        }

        @Override
        void answer0(ByteBuf reply) {
            byte[] bytes = ByteBufUtil.getBytes(reply);
            reply.release();
            if (!trySuccess(of.apply(bytes))) {
                late();
            }
        }
    }

    /** A request with headers, whose outcome is made of the reply and its headers. */
    private final class HeadedRequest<T> extends Request<T> {
        private final HeadedOperation<T> operation;

        HeadedRequest(
                @Nullable ByteBuf message,
                long timeoutNanos,
                boolean hasFullTimeout,
                boolean mayRedirect,
                HeadedOperation<T> operation) {
            super(message, operation.countedBytes(), timeoutNanos, hasFullTimeout, mayRedirect);
            this.operation = operation;
        }

        @Override
        Operation<T> operation() {
            return operation;
        }

        @Override
        Headers headers() {
            return operation.headers();
        }

        @Override
        ByteBuf frame0(ByteBufAllocator allocator, long timeMicros, ByteBuf payload) {
            return headers().isEmpty()
                    ? super.frame0(allocator, timeMicros, payload)
                    : Frames.ofHeadedRequest(
                            allocator, correlation(), timeMicros, operation.flags(), headers(), payload);
        }

        @Override
        void answer0(ByteBuf reply) {
            answer0(Headers.NONE, reply);
        }

        @Override
        void answer0(Headers headers, ByteBuf reply) {
            T value;
            try {
                value = operation.outcome().of(headers.metadata(), reply);
            } catch (Throwable cause) {
                tryFailure(cause);
                return;
            }
            if (!trySuccess(value)) {
                late();
                ReferenceCountUtil.release(value);
            }
        }
    }

    /** A stream: its outcome is the end. A handler may reply: with its only message. */
    private final class StreamRequest extends Request<Void> implements ItemStream.Owner {
        private final StreamOperation operation;

        StreamRequest(
                @Nullable ByteBuf message,
                long timeoutNanos,
                boolean hasFullTimeout,
                boolean mayRedirect,
                StreamOperation operation) {
            super(message, operation.headers().bytes(), timeoutNanos, hasFullTimeout, mayRedirect);
            this.operation = operation;
        }

        @Override
        Operation<Void> operation() {
            return operation;
        }

        @Override
        long lengthNanos() {
            return operation.limited() ? super.lengthNanos() : Long.MAX_VALUE;
        }

        @Override
        Headers headers() {
            return operation.headers();
        }

        @Override
        Future<Void> send0() {
            Future<Void> sent = super.send0();
            operation.stream().begin0(new ItemStream.Place(messenger, correlation(), this));
            return sent;
        }

        @Override
        ByteBuf frame0(ByteBufAllocator allocator, long timeMicros, ByteBuf payload) {
            return Frames.ofHeadedRequest(allocator, correlation(), timeMicros, Frames.STREAM, headers(), payload);
        }

        /** A stream cannot move: frames of its own may have been sent behind its request, or have failed it. */
        @Override
        boolean isMovable() {
            return false;
        }

        @Override
        void answer0(ByteBuf reply) {
            answer0(Headers.NONE, reply);
        }

        @Override
        void answer0(Headers headers, ByteBuf reply) {
            operation.stream().last0(reply);
            ended0(headers);
        }

        /** The server has said that it is over. */
        void ended0(Headers headers) {
            if (!isDone()) {
                operation.replied().accept(operation.stream().headersEnded0(headers.metadata()));
            }
            if (trySuccess(null)) { // otherwise a message is lost, and this is no proper end
                operation.stream().peerEnded0(correlation());
            }
        }

        @Override
        public void end0() {
            messenger
                    .outgoing()
                    .send(Frames.END, correlation(), Unpooled.EMPTY_BUFFER)
                    .addListener(sent -> {
                        if (!sent.isSuccess()) {
                            breakOff(sent.cause());
                        }
                    });
        }

        @Override
        public void breakOff(Throwable cause) {
            if (tryFailure(cause instanceof ConnectionException ? SendFailures.begun(channel, cause) : cause)) {
                onLoop(this::giveUp0);
            }
        }
    }

    /** One that is under way; null if it is over. */
    @Nullable ItemStream stream0(long correlation) {
        Request<?> request = pending.get(correlation);
        if (request == null) {
            return null;
        }
        answers0();
        return request instanceof StreamRequest stream ? stream.operation.stream() : null;
    }

    /** The server has ended a stream. */
    void streamEnded0(long correlation, Headers headers, ByteBuf frame, long arrivedNanos) {
        Request<?> request = answeredBy0(correlation, frame, arrivedNanos);
        if (request == null) {
            return;
        }
        frame.release();
        if (request instanceof StreamRequest stream) {
            stream.ended0(headers);
        } else {
            request.tryFailure(new RequestException.Failed(
                    "request to " + channel.remoteAddress() + ": the peer has ended it as a stream, which it is not"));
        }
    }

    /** Sweeps by then. One task serves all requests, since nearly all are answered long before their timeout. */
    private void sweepBy0(long deadlineNanos, long nowNanos) {
        Future<?> scheduled = sweep;
        if (scheduled != null && deadlineNanos - sweepNanos >= 0) {
            return;
        }
        sweep = channel.eventLoop().schedule(this::sweep0, deadlineNanos - nowNanos, TimeUnit.NANOSECONDS);
        sweepNanos = deadlineNanos;
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    /** Fails the requests that have timed out. */
    private void sweep0() {
        sweep = null;
        long now = clock.nanoTime();
        List<Request<?>> late = new ArrayList<>();
        long minLeftNanos = Long.MAX_VALUE;
        for (Request<?> request : pending.each()) {
            long leftNanos = request.deadlineNanos - now;
            if (leftNanos <= 0) {
                late.add(request);
            } else {
                minLeftNanos = Math.min(minLeftNanos, leftNanos);
            }
        }
        if (minLeftNanos < Long.MAX_VALUE) {
            sweepBy0(now + minLeftNanos, now);
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
            request.forget0();
            answeredNanos = arrivedNanos;
            if (!(request instanceof StreamRequest)) { // which takes as long as the program wants
                latency.took(arrivedNanos - request.beganNanos);
                ConnectionStat stat = messenger.stat();
                if (stat != null) {
                    stat.answered0(arrivedNanos - request.beganNanos);
                }
            }
        }
        return request;
    }

    private void countUnanswered0() {
        ClientTransport.Owner owner = messenger.owner();
        if (++unanswered >= MAX_UNANSWERED && owner != null) {
            unanswered = 0;
            owner.unanswered(messenger);
        }
    }

    /** The server does answer. */
    private void answers0() {
        unanswered = 0;
        if (unproven) { // other threads read it: it is written once
            unproven = false;
        }
    }

    private @Nullable Request<?> awaiting0(long correlation, ByteBuf answer) {
        answers0();
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

    /** As {@link #answered0(long, ByteBuf, long)}, with the reply's headers. */
    void answered0(long correlation, Headers headers, ByteBuf reply, long arrivedNanos) {
        Request<?> request = answeredBy0(correlation, reply, arrivedNanos);
        if (request != null) {
            request.answer0(headers, reply);
        }
    }

    /** The peer's handler has failed; the text gives the reason, if the peer sent it. */
    void failed0(long correlation, ByteBuf words, long arrivedNanos) {
        Request<?> request = answeredBy0(correlation, words, arrivedNanos);
        if (request != null) {
            failures.add0(arrivedNanos);
            String text = words.toString(StandardCharsets.UTF_8);
            words.release();
            request.tryFailure(new RequestException.Failed("request to " + channel.remoteAddress()
                    + ": the peer's handler failed" + (text.isEmpty() ? "; the peer's log says why" : ": " + text)));
        }
    }

    /** The peer's program has answered with a failure. */
    void error0(long correlation, ByteBuf frame, long arrivedNanos) {
        RequestFailure failure = Frames.readError(frame);
        Request<?> request = answeredBy0(correlation, frame, arrivedNanos);
        if (request != null) {
            failures.add0(arrivedNanos);
            frame.release();
            request.tryFailure(failure);
        }
    }

    /** Handles a refusal: the server has not begun with the request. */
    void refused0(long correlation, long retryNanos, ByteBuf frame) {
        Request<?> request = awaiting0(correlation, frame);
        if (request == null) {
            return;
        }
        frame.release();
        request.forget0();
        failures.add0(clock.nanoTime());
        request.tryFailure(new RequestException.Overloaded(
                "request to " + channel.remoteAddress() + ": the server is overloaded and did not begin with it;"
                        + " try again in " + Messenger.inMillis(retryNanos) + " ms",
                Duration.ofNanos(retryNanos)));
    }

    /** Handles a refusal for a reason that stays: nothing was begun, and another try would not help. */
    void refused0(long correlation, int why, ByteBuf words) {
        Request<?> request = awaiting0(correlation, words);
        if (request == null) {
            return;
        }
        String text = ShortForm.printable(words.toString(StandardCharsets.UTF_8));
        words.release();
        request.forget0();
        failures.add0(clock.nanoTime());
        RequestException.Refused.Reason reason = switch (why) {
            case Frames.REFUSED_UNKNOWN -> RequestException.Refused.Reason.UNKNOWN;
            case Frames.REFUSED_NOT_AUTHORIZED -> RequestException.Refused.Reason.NOT_AUTHORIZED;
            default -> RequestException.Refused.Reason.LIMIT;
        };
        request.tryFailure(new RequestException.Refused(
                "request to " + channel.remoteAddress() + ": the server has refused it: "
                        + (text.isEmpty() ? reason.toString() : text),
                reason));
    }

    /** The server has asked its clients to leave. */
    void serverLeaves0(long retryNanos, String reason) {
        ClientTransport.Owner owner = messenger.owner();
        if (owner != null && leavingNanos == NOT_ASKED) {
            leavingNanos = retryNanos;
            owner.leaving(messenger, retryNanos, reason);
        }
    }

    /** The server is leaving, whether or not it has said so before, and has not begun with it. */
    void refusedLeaving0(long correlation, ByteBuf words) {
        String reason = ShortForm.printable(words.toString(StandardCharsets.UTF_8));
        serverLeaves0(0, reason);
        Request<?> request = awaiting0(correlation, words);
        if (request == null) {
            return;
        }
        words.release();
        request.forget0();
        request.tryFailure(new ConnectionException.Unavailable("request to " + channel.remoteAddress()
                + ": the server is leaving, and has not begun with it" + (reason.isEmpty() ? "" : ": " + reason)));
    }

    /** The connection has ended. */
    void end0() {
        inactive = true;
        Future<?> scheduled = sweep;
        if (scheduled != null) {
            scheduled.cancel(false);
            sweep = null;
        }
        if (pending.isEmpty()) {
            return;
        }
        Throwable closed = messenger.closed("request", new ClosedChannelException());
        Throwable begun = SendFailures.begun(channel, closed);
        for (Request<?> request : pending.all()) {
            request.forget0();
            if (request.handedOver || !request.isMovable()) {
                request.drop(begun);
            } else {
                request.notBegun(closed, request.leftNanos());
            }
        }
    }
}
