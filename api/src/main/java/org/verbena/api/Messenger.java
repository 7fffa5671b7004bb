package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelPromise;
import io.netty.util.IllegalReferenceCountException;
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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.ConnectionException;

/**
 * The last handler in the pipeline of the short form's channels. Each message begins with 8 bytes, its kind and the
 * number of the request that it belongs to:
 *
 * <pre>{@code
 *  0      1                  8
 * | kind | correlation      | payload ...     big endian; correlation is 0 for plain messages
 * }</pre>
 *
 * <p>Behind that, a timed request has 4 bytes that say how long its sender waits for the reply, in microseconds. It goes
 * to servers alone that {@linkplain ShortForm#TAKES_TIMED_REQUESTS announced} that they take it. A refusal answers timed
 * requests alone, and has 4 bytes as well: after how many microseconds the request may be sent again.
 *
 * <p>A fence asks for an empty reply when the messages in front of it have been handled, and a leave has the server close
 * the connection. They go to servers that {@linkplain ShortForm#TAKES_FENCES announced} it, from a client that moves to
 * another connection.
 */
final class Messenger extends ChannelDuplexHandler {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    static final int MESSAGE = 0;
    static final int REQUEST = 1;
    static final int REPLY = 2;
    static final int FAILURE = 3;
    static final int TIMED_REQUEST = 4;
    static final int OVERLOADED = 5;
    static final int FENCE = 6;
    static final int LEAVE = 7;

    private static final int HEADER_BYTES = 8;
    private static final int TIME_BYTES = 4;

    /** The most that fits there, which stands for all longer times: more than an hour, and no deadline. */
    private static final long UNLIMITED_MICROS = 0xffff_ffffL;

    /** For messages of other kinds. */
    private static final long NO_TIME = -1;

    private static final int KIND_SHIFT = 56;
    private static final long CORRELATION_MASK = (1L << KIND_SHIFT) - 1;

    /** Up to this size, copying a message behind its header is cheaper than sending it in two pieces. */
    private static final int COPIED_BYTES = 2048;

    /** How much of an exception's text is sent to the peer, in characters. */
    private static final int FAILURE_CHARS = 1000;

    /** Times that are further apart could not be compared. */
    private static final long MAX_TIMEOUT_NANOS = Long.MAX_VALUE >> 1;

    private final RdmaChannel channel;
    private final MessageHandler handler;

    /**
     * Whether to stop reading while the channel is unwritable. Only one end may do so, or both could wait for each
     * other.
     */
    private final boolean pausesReading;

    /** Whether a peer whose request failed is told what the handler threw. */
    private final boolean describesFailures;

    /** Runs the handler on virtual threads, if that was requested; else null. */
    private final @Nullable VirtualHandlers virtual;

    private final HandlerLog log;
    private final RequestCounters counters;

    /** Says which requests have waited too long; null to refuse none for that. */
    private final @Nullable QueueAge queueAge;

    /** Says which of this end's requests are sent again; null for none. */
    private final @Nullable Retries retries;

    private final LongAdder lateReplies;

    /** Where a client's messages go, which may be another connection than this one by then; null for a server's. */
    private final @Nullable Links links;

    // Written by the loop, read by any thread.
    private volatile @Nullable Throwable firstCause;
    private volatile boolean closedHere;

    // Confined to the event loop.
    private final LongObjectHashMap<Request<?>> pending = new LongObjectHashMap<>();
    private final Exchange plain = Exchange.ofMessage(this);
    private long lastCorrelation;
    private boolean inactive;

    /** Whether the connection ends with its last request. */
    private boolean leaving;

    /** The message that a handler on the loop has now. */
    private @Nullable ByteBuf handled;

    /** When the first message of this read arrived. */
    private long readBeganNanos;

    private boolean inRead;
    private @Nullable Future<?> sweep;
    private long sweepNanos;

    private Messenger(RdmaChannel channel, Serving serving, @Nullable Links links) {
        this.channel = channel;
        this.links = links;
        pausesReading = links == null;
        lateReplies = links == null ? new LongAdder() : links.lateReplies();
        handler = serving.handler();
        describesFailures = serving.describesFailures();
        counters = serving.counters();
        queueAge = serving.queueAge();
        retries = serving.retries();
        virtual = serving.virtualThreads() ? new VirtualHandlers(this, serving.limit()) : null;
        log = new HandlerLog(channel);
    }

    static Messenger ofClient(RdmaChannel channel, Serving serving, Links links) {
        return new Messenger(channel, serving, links);
    }

    static Messenger ofServer(RdmaChannel channel, Serving serving) {
        return new Messenger(channel, serving, null);
    }

    /** Only servers have requests to take. The connection is not made before its handlers are there. */
    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        if (pausesReading) {
            channel.announce0(ShortForm.TAKES_TIMED_REQUESTS | ShortForm.TAKES_FENCES);
        }
    }

    RdmaChannel channel() {
        return channel;
    }

    /** In registered memory; null stays null, which {@link #send} refuses. */
    @Nullable ByteBuf copy(byte @Nullable [] bytes) {
        return bytes == null ? null : channel.alloc().buffer(bytes.length).writeBytes(bytes);
    }

    /** As {@link #copy(byte[])}, without moving the position. */
    @Nullable ByteBuf copy(@Nullable ByteBuffer bytes) {
        return bytes == null ? null : channel.alloc().buffer(bytes.remaining()).writeBytes(bytes.duplicate());
    }

    /** The same future in the JDK's type. */
    <T> CompletableFuture<T> completable(Future<T> future) {
        return LoopFuture.of(future);
    }

    /**
     * Sends.
     *
     * @param payload its ownership is taken
     * @return done when the send has completed
     */
    Future<Void> send(int kind, long correlation, @Nullable ByteBuf payload) {
        return send(kind, correlation, NO_TIME, payload, new Sent());
    }

    /** Sends a message of a handler's own, from a client on the connection that it has by now. */
    Future<Void> sendMessage(@Nullable ByteBuf payload) {
        return links == null ? send(MESSAGE, 0, payload) : links.send(this, payload);
    }

    /** As {@link #send(int, long, ByteBuf)}, for the reply to a request that arrived then. */
    Future<Void> reply(long correlation, ByteBuf payload, long arrivedNanos) {
        return send(REPLY, correlation, NO_TIME, payload, new Reply(arrivedNanos));
    }

    private Future<Void> send(int kind, long correlation, long timeMicros, @Nullable ByteBuf payload, Sent sent) {
        ByteBuf frame;
        try {
            frame = frame(kind, correlation, timeMicros, checkUsable(payload));
        } catch (RuntimeException | Error cause) {
            // The message is null or released, or there is no memory for its header.
            if (payload != null && payload.refCnt() > 0) {
                payload.release();
            }
            sent.setFailure(cause);
            return sent;
        }
        return channel.writeAndFlush(frame, sent);
    }

    /**
     * Makes sure that the handler does not send back its own message without retaining it.
     *
     * @throws IllegalStateException the message would be released during the send
     */
    void checkKept(Exchange exchange, ByteBuf message) {
        ByteBuf now = exchange.handled();
        if (now == null && channel.eventLoop().inEventLoop()) {
            now = handled;
        }
        if (now != null && message != null && message.refCnt() == 1 && isSame(root(message), root(now))) {
            throw gaveAway();
        }
    }

    @SuppressWarnings("ReferenceEquality") // by identity: buffers are equal if their bytes are
    private static boolean isSame(ByteBuf one, ByteBuf other) {
        return one == other;
    }

    private static ByteBuf root(ByteBuf buffer) {
        ByteBuf root = buffer;
        for (ByteBuf inner = root.unwrap(); inner != null; inner = root.unwrap()) {
            root = inner;
        }
        return root;
    }

    private static IllegalStateException gaveAway() {
        return new IllegalStateException("the handler released or gave away the message, which is released when the"
                + " handler returns; use send(message.retain()) to send it back, and retain() to keep it");
    }

    void sendFailure(long correlation, Throwable cause) {
        String text = describesFailures ? String.valueOf(cause) : "";
        send(
                FAILURE,
                correlation,
                copy(text.substring(0, Math.min(text.length(), FAILURE_CHARS)).getBytes(StandardCharsets.UTF_8)));
    }

    /** Tells the peer that its request was not begun: in words if it does not know refusals. */
    void sendOverloaded(long correlation, boolean refusable, long retryAfterNanos) {
        if (refusable) {
            long micros = Math.min(TimeUnit.NANOSECONDS.toMicros(retryAfterNanos), UNLIMITED_MICROS);
            send(OVERLOADED, correlation, micros, Unpooled.EMPTY_BUFFER, new Sent());
            return;
        }
        String text = "the server is overloaded, try again in " + inMillis(retryAfterNanos) + " ms";
        send(FAILURE, correlation, copy(text.getBytes(StandardCharsets.UTF_8)));
    }

    private static long inMillis(long nanos) {
        return Math.max(1, TimeUnit.NANOSECONDS.toMillis(nanos));
    }

    private ByteBuf frame(int kind, long correlation, long timeMicros, ByteBuf payload) {
        long header = (long) kind << KIND_SHIFT | correlation;
        boolean timed = timeMicros != NO_TIME;
        int bytes = payload.readableBytes();
        int copiedBytes = bytes <= COPIED_BYTES ? bytes : 0;
        ByteBuf head = channel.alloc().directBuffer(HEADER_BYTES + (timed ? TIME_BYTES : 0) + copiedBytes);
        head.writeLong(header);
        if (timed) {
            head.writeInt((int) timeMicros);
        }
        if (bytes <= COPIED_BYTES) {
            head.writeBytes(payload);
            payload.release();
            return head;
        }
        return channel.alloc().compositeDirectBuffer(2).addComponents(true, head, payload);
    }

    private static ByteBuf checkUsable(@Nullable ByteBuf message) {
        if (message == null) {
            throw new NullPointerException("the message is null");
        }
        if (message.refCnt() == 0) {
            throw new IllegalReferenceCountException("the message has been released: its owner may send it once");
        }
        return message;
    }

    // ---- requests

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

    /** Done when the server has handled the messages that were sent before; requests may still wait for their replies. */
    Future<byte[]> fence(long timeoutNanos) {
        return start(new CopyingRequest<byte[]>(Unpooled.EMPTY_BUFFER, timeoutNanos) {
            @Override
            Future<Void> post0(ByteBuf bytes, long timeNanos) {
                return channel.peerTakes0(ShortForm.TAKES_FENCES)
                        ? send(FENCE, correlation(), bytes)
                        : channel.newFailedFuture(
                                new UnsupportedOperationException("the server is of a release without fences"));
            }

            @Override
            byte[] of(byte[] reply) {
                return reply;
            }
        });
    }

    /** Has the server close the connection when the last request has its outcome. No request may follow. Any thread. */
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
        send(LEAVE, 0, Unpooled.EMPTY_BUFFER);
        // A server that does not close in time is closed from here, as a connection without a fence is.
        Future<?> limit =
                channel.eventLoop().schedule(() -> channel.close(), ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS);
        channel.closeFuture().addListener(closed -> limit.cancel(false));
    }

    private <T> Future<T> start(Request<T> request) {
        try {
            checkUsable(request.message);
        } catch (RuntimeException cause) {
            request.tryFailure(cause);
            return request;
        }
        if (channel.eventLoop().inEventLoop()) {
            request.run();
        } else {
            try {
                channel.eventLoop().execute(request);
            } catch (RejectedExecutionException ended) {
                request.giveUp(closed("request", ended));
            }
        }
        return request;
    }

    /** Why nothing can be sent or answered any more. Any thread. */
    private Throwable closed(String what, Throwable closed) {
        Throwable cause = firstCause;
        String subject = what + " to " + channel.remoteAddress() + ": ";
        if (cause != null) {
            return new ConnectionException.Lost(subject + "the connection is lost: " + cause.getMessage(), cause);
        }
        return closedHere
                ? new ConnectionException(subject + "this end has closed the connection", closed)
                : new ConnectionException(subject + "the peer has closed the connection", closed);
    }

    /** The future of a send; on a closed connection it fails with the reason why it is closed. */
    private class Sent extends DefaultChannelPromise {
        Sent() {
            super(channel);
        }

        private Throwable explain(Throwable cause) {
            boolean isClosed = cause instanceof ClosedChannelException
                    || cause instanceof RejectedExecutionException
                    || cause.getClass() == ConnectionException.class; // one end had closed, and the channel not yet
            return isClosed ? closed("send", cause) : cause;
        }

        @Override
        public ChannelPromise setFailure(Throwable cause) {
            return super.setFailure(explain(cause));
        }

        @Override
        public boolean tryFailure(Throwable cause) {
            return super.tryFailure(explain(cause));
        }

        @Override
        protected void checkDeadLock() {
            ShortForm.checkMayWait(executor());
        }
    }

    /** The future of a reply, whose request has taken its time when the reply is sent. */
    private final class Reply extends Sent {
        private final long arrivedNanos;

        Reply(long arrivedNanos) {
            this.arrivedNanos = arrivedNanos;
        }

        @Override
        public boolean trySuccess(@Nullable Void result) {
            ConnectionStat stat = channel.stat();
            if (stat != null && channel.eventLoop().inEventLoop()) {
                stat.answered0(System.nanoTime() - arrivedNanos);
            }
            return super.trySuccess(null);
        }
    }

    /**
     * A request, which is the promise of its reply. The channel owns the message from the start, so cancelling the
     * request releases nothing early.
     */
    private abstract class Request<T> extends DefaultPromise<T> implements Runnable {
        private final @Nullable ByteBuf message;
        private final long timeoutNanos;
        private long correlation;
        private long beganNanos;
        private long deadlineNanos;
        /** The message, while it may have to be sent again. */
        private @Nullable ByteBuf kept;

        private int sentAgain;

        Request(@Nullable ByteBuf message, long timeoutNanos) {
            super(channel.eventLoop());
            this.message = message;
            this.timeoutNanos = timeoutNanos;
        }

        /** Completes the request with the reply, which it now owns. */
        abstract void answer0(ByteBuf reply);

        /** Fails before anything is sent. */
        private void giveUp(Throwable cause) {
            if (message != null) {
                message.release();
            }
            tryFailure(cause);
        }

        @Override
        protected void checkDeadLock() {
            ShortForm.checkMayWait(executor());
        }

        @Override
        public void run() {
            if (message == null || isDone()) {
                giveUp(new CancellationException("cancelled before it began"));
                return;
            }
            if (inactive) {
                giveUp(closed("request", new ClosedChannelException()));
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
            correlation = ++lastCorrelation & CORRELATION_MASK;
            pending.put(correlation, this);
        }

        final long correlation() {
            return correlation;
        }

        Future<Void> post0(ByteBuf bytes, long timeNanos) {
            long micros = Math.min(TimeUnit.NANOSECONDS.toMicros(timeNanos), UNLIMITED_MICROS);
            return channel.peerTakes0(ShortForm.TAKES_TIMED_REQUESTS)
                    ? send(TIMED_REQUEST, correlation, micros, bytes, new Sent())
                    : send(REQUEST, correlation, bytes);
        }

        private void send0(ByteBuf bytes, long timeNanos) {
            post0(bytes, timeNanos).addListener(sent -> {
                if (!sent.isSuccess()) {
                    forget0();
                    tryFailure(sent.cause());
                }
            });
        }

        private void timeOut0() {
            forget0();
            tryFailure(new RequestException.TimedOut("request to " + channel.remoteAddress() + ": no reply within "
                    + inMillis(timeoutNanos) + " ms; the peer may still be working on it"));
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
         * The server has refused it. If it may be sent again within its time, it is, with a number of its own that waits
         * for its reply from now on, so that it ends with its time or with the connection.
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
            ByteBuf bytes = kept;
            if (bytes != null) { // else it has its outcome
                send0(bytes.retainedDuplicate(), Math.max(0, deadlineNanos - System.nanoTime()));
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

    /** A request whose reply is copied out of its Netty buffer. */
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

    // ---- what comes in

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (!inRead) {
            inRead = true;
            readBeganNanos = System.nanoTime();
        }
        ByteBuf frame = (ByteBuf) message;
        if (frame.readableBytes() < HEADER_BYTES) {
            int bytes = frame.readableBytes();
            frame.release();
            throw notTheShortForm("of " + bytes + " bytes");
        }
        long header = frame.readLong();
        int kind = (int) (header >>> KIND_SHIFT);
        long correlation = header & CORRELATION_MASK;
        switch (kind) {
            case MESSAGE -> receive(virtual == null ? plain : Exchange.ofMessage(this), frame);
            case REQUEST -> receive(Exchange.ofRequest(this, correlation, channel.arrivalNanos0()), frame);
            case TIMED_REQUEST -> receiveTimed(correlation, frame);
            case REPLY, FAILURE -> answer(kind, correlation, frame);
            case OVERLOADED -> refused(correlation, frame);
            case FENCE -> receive(Exchange.ofFence(this, correlation), frame);
            case LEAVE -> {
                frame.release();
                channel.close();
            }
            default -> {
                frame.release();
                throw notTheShortForm("of kind " + kind);
            }
        }
    }

    private static IllegalStateException notTheShortForm(String what) {
        return new IllegalStateException("a message " + what + " is not from an RdmaClient or RdmaServer: have the peer"
                + " use one, or serve it with a plain RdmaChannel");
    }

    /** The time that timed requests and refusals have behind their header. */
    private static long readMicros(int kind, ByteBuf frame) {
        if (frame.readableBytes() < TIME_BYTES) {
            int bytes = HEADER_BYTES + frame.readableBytes();
            frame.release();
            throw notTheShortForm("of kind " + kind + " and " + bytes + " bytes");
        }
        return frame.readUnsignedInt();
    }

    private void receiveTimed(long correlation, ByteBuf frame) {
        long micros = readMicros(TIMED_REQUEST, frame);
        long timeNanos = micros == UNLIMITED_MICROS ? Long.MAX_VALUE : TimeUnit.MICROSECONDS.toNanos(micros);
        receive(Exchange.ofTimedRequest(this, correlation, channel.arrivalNanos0(), timeNanos), frame);
    }

    private void receive(Exchange exchange, ByteBuf message) {
        VirtualHandlers elsewhere = virtual;
        if (elsewhere != null) {
            elsewhere.start(exchange, message);
            return;
        }
        ByteBuf outer = handled;
        handled = message;
        try {
            handle(exchange, message);
        } finally {
            handled = outer;
        }
    }

    /**
     * Runs the handler, unless nobody waits for its reply any more or too many wait for theirs, then releases its
     * message. On the loop, or on a virtual thread.
     */
    void handle(Exchange exchange, ByteBuf message) {
        if (exchange.isFence()) {
            message.release();
            exchange.pass();
            return;
        }
        if (exchange.isExpired()) {
            message.release();
            counters.countExpired();
            return;
        }
        if (queueAge != null && exchange.isRequest()) {
            long now = System.nanoTime();
            long waitedNanos = now - exchange.arrivedNanos();
            if (queueAge.refuses(waitedNanos, now)) {
                refuse(exchange, message, waitedNanos);
                return;
            }
        }
        Throwable failure = null;
        try {
            handler.onMessage(exchange, message);
        } catch (Throwable thrown) {
            failure = thrown;
        }
        if (message.refCnt() > 0) {
            message.release();
        } else if (failure == null) {
            failure = gaveAway();
        }
        if (failure != null) {
            log.failed(exchange, failure);
            exchange.fail(failure);
        }
    }

    /** Refuses a request, since the server is overloaded. On the loop, or on a virtual thread. */
    void refuse(Exchange exchange, ByteBuf message, long retryAfterNanos) {
        message.release();
        counters.countOverloaded();
        exchange.refuse(retryAfterNanos);
    }

    /** The request of an answer; null, and the answer released, if it has its outcome already. */
    private @Nullable Request<?> awaiting(long correlation, ByteBuf answer) {
        Request<?> request = pending.get(correlation);
        if (request == null) {
            lateReplies.increment();
            answer.release();
        }
        return request;
    }

    private void refused(long correlation, ByteBuf frame) {
        long retryNanos = TimeUnit.MICROSECONDS.toNanos(readMicros(OVERLOADED, frame));
        Request<?> request = awaiting(correlation, frame);
        if (request == null) {
            return;
        }
        frame.release();
        if (!request.sendsAgain0(retryNanos)) {
            request.forget0();
            request.tryFailure(new RequestException.Overloaded(
                    "request to " + channel.remoteAddress() + ": the server is overloaded and did not begin with it;"
                            + " try again in " + inMillis(retryNanos) + " ms",
                    Duration.ofNanos(retryNanos)));
        }
    }

    private void answer(int kind, long correlation, ByteBuf frame) {
        Request<?> request = awaiting(correlation, frame);
        if (request == null) {
            return;
        }
        if (retries != null) {
            retries.answered();
        }
        request.forget0();
        ConnectionStat stat = channel.stat();
        if (stat != null) {
            stat.answered0(readBeganNanos - request.beganNanos);
        }
        if (kind == REPLY) {
            request.answer0(frame);
        } else {
            String text = frame.toString(StandardCharsets.UTF_8);
            frame.release();
            request.tryFailure(new RequestException.Failed("request to " + channel.remoteAddress()
                    + ": the peer's handler failed" + (text.isEmpty() ? "; the peer's log says why" : ": " + text)));
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        updateReading0();
        context.fireChannelWritabilityChanged();
    }

    /** Reads as long as the peer accepts what it is sent and handlers keep up. */
    void updateReading0() {
        if (pausesReading) {
            channel.config().setAutoRead(channel.isWritable() && (virtual == null || !virtual.isFull0()));
        }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        if (inRead) {
            inRead = false;
            log.took(System.nanoTime() - readBeganNanos);
        }
        context.fireChannelReadComplete();
    }

    @Override
    public void close(ChannelHandlerContext context, ChannelPromise promise) {
        closedHere = true;
        context.close(promise);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        if (firstCause == null) {
            firstCause = cause;
            LOG.warn("{}: {}", channel, cause.getMessage() == null ? cause : cause.getMessage());
            LOG.debug("{}", channel, cause);
        }
        channel.close();
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        inactive = true;
        Future<?> scheduled = sweep;
        if (scheduled != null) {
            scheduled.cancel(false);
            sweep = null;
        }
        Throwable cause = firstCause;
        for (Request<?> request : new ArrayList<>(pending.values())) {
            request.forget0();
            request.tryFailure(cause == null ? closed("request", new ClosedChannelException()) : cause);
        }
        context.fireChannelInactive();
    }
}
