package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelPromise;
import io.netty.util.IllegalReferenceCountException;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * The last handler in the pipeline of the short form's channels. Each message begins with 8 bytes, its kind and the
 * number of the request that it belongs to:
 *
 * <pre>{@code
 *  0      1                  8
 * | kind | correlation      | payload ...     big endian; correlation is 0 for plain messages
 * }</pre>
 *
 * <p>Behind that, a timed request has 4 bytes that say how long its sender waits for the reply, in microseconds.
 * Clients send it only to servers that {@linkplain #TAKES_TIMED_REQUESTS announced} it. A refusal answers only timed
 * requests, and has 4 bytes as well: after how many microseconds the request may be sent again.
 *
 * <p>A server that is leaving says so, with 4 bytes that say after how many milliseconds it may be connected to again,
 * and a reason. A refused has one byte that says why, and words: the request was not begun.
 *
 * <p>A leave makes the server close the connection when it has sent what it has to send. A client that goes on with
 * another connection sends it when it has its last reply, only to servers that {@linkplain #EXTENDED announced} it.
 */
public final class Messenger extends ChannelDuplexHandler {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    static final int MESSAGE = 0;
    static final int REQUEST = 1;
    public static final int REPLY = 2;
    static final int FAILURE = 3;
    static final int TIMED_REQUEST = 4;
    static final int OVERLOADED = 5;

    /** Kind 6 belonged to a frame of earlier versions. */
    static final int LEAVE = 7;

    static final int LEAVING = 9;
    static final int REFUSED = 10;

    /** Why a server has refused a request: it is leaving. */
    private static final int REFUSED_LEAVING = 1;

    /** The feature of a server that accepts requests with a time limit; announced in the handshake. */
    static final int TAKES_TIMED_REQUESTS = 1;

    /** The feature of a peer that knows the kinds from 7 on. Feature 2 belonged to earlier versions. */
    static final int EXTENDED = 4;

    private static final int HEADER_BYTES = 8;
    private static final int TIME_BYTES = 4;

    /** The largest value that fits, which stands for all longer times: more than an hour, and no deadline. */
    private static final long UNLIMITED_MICROS = 0xffff_ffffL;

    /** For messages of other kinds. */
    private static final long NO_TIME = -1;

    private static final int KIND_SHIFT = 56;
    static final long CORRELATION_MASK = (1L << KIND_SHIFT) - 1;

    /** Up to this size, copying a message behind its header is cheaper than sending it with two SGEs. */
    private static final int COPIED_BYTES = 2048;

    /** How much of an exception's text is sent to the peer, in characters. */
    private static final int FAILURE_CHARS = 1000;

    private final MessagePort port;
    private final Channel channel;
    private final Serving.Handler handler;

    /**
     * Whether to read nothing while the channel is unwritable. Only one end may do so, or both could wait for each
     * other.
     */
    private final boolean pausesReading;

    /** Whether to send the handler's exception to a peer whose request failed. */
    private final boolean describesFailures;

    /** Runs the handler on virtual threads, if that was requested; else null. */
    private final @Nullable VirtualHandlers virtual;

    private final HandlerLog log;
    private final RequestCounters counters;

    /** Determines which requests have waited too long; null to refuse none for that. */
    private final @Nullable QueueAge queueAge;

    /** Runs the listeners of this connection's futures. */
    private final EventExecutor notifier;

    private final SendLimit limit;
    private final Requests requests;

    /** Null for a server's connection. */
    private final @Nullable LinkOwner owner;

    // Written by the loop, read by any thread.
    private volatile @Nullable Throwable firstCause;
    private volatile boolean closedHere;

    /** Set when it is added to the pipeline, before any thread can send. */
    @SuppressWarnings("NullAway.Init")
    private ChannelHandlerContext self;

    // Confined to the event loop.
    private final Incoming plain = Incoming.ofMessage(this);
    /** The message that a handler on the loop has now. */
    private @Nullable ByteBuf handled;

    /** When the first message of this read arrived. */
    private long readBeganNanos;

    private boolean inRead;

    /** The pipeline has requested a read, which waits until the peer accepts data and handlers keep up. */
    private boolean isReadHeld;

    /** Auto-read requested it. */
    private boolean isHeldByAutoRead;

    private Messenger(MessagePort port, Serving serving, @Nullable LinkOwner owner) {
        this.port = port;
        channel = port.channel();
        this.owner = owner;
        pausesReading = owner == null;
        handler = serving.handler();
        describesFailures = serving.describesFailures();
        counters = serving.counters();
        queueAge = serving.queueAge();
        virtual = serving.virtualThreads() ? new VirtualHandlers(this, serving.limit()) : null;
        log = new HandlerLog(port);
        notifier = ((RdmaEventLoop) channel.eventLoop()).notifier();
        limit = new SendLimit(serving.bounds());
        LongAdder lateReplies = owner == null ? new LongAdder() : owner.lateReplies();
        requests = new Requests(this, lateReplies, limit, serving.maxRequests());
    }

    public static Messenger ofClient(MessagePort port, Serving serving, LinkOwner owner) {
        return new Messenger(port, serving, owner);
    }

    public static Messenger ofServer(MessagePort port, Serving serving) {
        return new Messenger(port, serving, null);
    }

    /**
     * Announces features; only servers accept requests. The connection is made only after its handlers are added.
     */
    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        self = context;
        port.reserveHeader0(HEADER_BYTES + TIME_BYTES);
        port.announce0(pausesReading ? TAKES_TIMED_REQUESTS | EXTENDED : EXTENDED);
    }

    public Channel channel() {
        return channel;
    }

    /** The client that this connection belongs to; null for a server's connection. */
    @Nullable LinkOwner owner() {
        return owner;
    }

    /** How many operations of this end are under way, which costs a reader no lock: the figure may lag. Any thread. */
    public int load() {
        return requests.load() + limit.messages();
    }

    /** Whether the peer's program announced this feature. Event loop only. */
    boolean peerTakes0(int feature) {
        return port.peerTakes0(feature);
    }

    /** What {@code verbena stat} shows about the channel; null if nothing. Any thread. */
    @Nullable ConnectionStat stat() {
        return port.stat();
    }

    /** In registered memory; null stays null, which {@link #send} refuses. */
    public @Nullable ByteBuf copy(byte @Nullable [] bytes) {
        return bytes == null ? null : channel.alloc().buffer(bytes.length).writeBytes(bytes);
    }

    /** As {@link #copy(byte[])}, without moving the position. */
    public @Nullable ByteBuf copy(@Nullable ByteBuffer bytes) {
        return bytes == null ? null : channel.alloc().buffer(bytes.remaining()).writeBytes(bytes.duplicate());
    }

    /** The same future in the JDK's type. */
    <T> CompletableFuture<T> completable(Future<T> future) {
        return LoopFuture.of(future);
    }

    /** Runs the listeners of this connection's futures: they are called whether or not its loop has ended. */
    public EventExecutor notifier() {
        return notifier;
    }

    /**
     * Sends a message that counts against no limit.
     *
     * @param payload its ownership is taken
     * @return done when the send has completed
     */
    Future<Void> send(int kind, long correlation, @Nullable ByteBuf payload) {
        return send(kind, correlation, NO_TIME, payload, new Sent(HEADER_BYTES));
    }

    /** As {@link #send(int, long, ByteBuf)}, with a time behind the header. */
    Future<Void> sendTimed(int kind, long correlation, long timeNanos, ByteBuf payload) {
        long micros = Math.min(TimeUnit.NANOSECONDS.toMicros(timeNanos), UNLIMITED_MICROS);
        return send(kind, correlation, micros, payload, new Sent(HEADER_BYTES + TIME_BYTES));
    }

    /**
     * Sends a plain message, unless too much waits to be sent.
     *
     * @param payload its ownership is taken
     * @return done when the send has completed
     */
    Future<Void> message(@Nullable ByteBuf payload) {
        return message(payload, false);
    }

    /**
     * As {@link #message(ByteBuf)}. On a connection that is gone, or that its client is about to leave, the client goes
     * on with it, if so requested.
     *
     * @param payload its ownership is taken
     */
    Future<Void> message(@Nullable ByteBuf payload, boolean goesOn) {
        int bytes = payload == null ? 0 : payload.readableBytes();
        if (!limit.tryTake(bytes)) {
            ReferenceCountUtil.safeRelease(payload);
            return notifier.newFailedFuture(limit.refusal("send", channel.remoteAddress(), bytes));
        }
        LinkOwner client = owner;
        if (goesOn && client != null && payload != null && !isUsable()) {
            Promise<Void> outcome = notifier.newPromise();
            boolean hasGone = client.goOn(outcome, Operation.SEND, payload, Long.MAX_VALUE);
            if (!hasGone) { // nor can it be sent behind a leave: it would be lost
                payload.release();
                outcome.tryFailure(closed("send", new ClosedChannelException()));
            }
            requests.giveBack(bytes);
            return outcome;
        }
        return send(MESSAGE, 0, NO_TIME, payload, new Counted(bytes));
    }

    /**
     * Sends the reply to a request that arrived then. If it cannot be sent, the request fails at once. It counts but is
     * never refused, since the peer has requested it.
     */
    Future<Void> reply(long correlation, @Nullable ByteBuf payload, long arrivedNanos) {
        int bytes = payload == null ? 0 : payload.readableBytes();
        limit.take(bytes);
        Reply sent = new Reply(bytes, correlation, arrivedNanos);
        sent.addListener(sent);
        return send(REPLY, correlation, NO_TIME, payload, sent);
    }

    private Future<Void> send(int kind, long correlation, long timeMicros, @Nullable ByteBuf payload, Sent sent) {
        ByteBuf frame = frameFor(sent, kind, correlation, timeMicros, payload);
        return frame == null ? sent : self.writeAndFlush(frame, sent);
    }

    /** Null if there is none; then the promise has failed. */
    private @Nullable ByteBuf frameFor(
            ChannelPromise promise, int kind, long correlation, long timeMicros, @Nullable ByteBuf payload) {
        try {
            return frame(kind, correlation, timeMicros, checkUsable(payload));
        } catch (RuntimeException | Error cause) {
            // The message is null or released, or there is no memory for its header.
            if (payload != null && payload.refCnt() > 0) {
                payload.release();
            }
            promise.setFailure(cause);
            return null;
        }
    }

    /**
     * A buffer that a program writes to the channel, or through Netty's {@code ChannelGroup} to all of a server's
     * connections, is a message to the peer's handler.
     */
    @Override
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
        if (!(message instanceof ByteBuf payload)) {
            ReferenceCountUtil.release(message);
            promise.setFailure(
                    new UnsupportedOperationException("a " + message.getClass().getName()
                            + " cannot be sent on a channel of an RdmaClient or RdmaServer: write a ByteBuf, which is a message"
                            + " to the peer's handler, or use a plain RdmaChannel"));
            return;
        }
        ByteBuf frame = frameFor(promise, MESSAGE, 0, NO_TIME, payload);
        if (frame != null) {
            context.write(frame, promise);
        }
    }

    /**
     * Makes sure that the handler does not send back its own message without retaining it.
     *
     * @throws IllegalStateException the message would be released during the send
     */
    void checkKept(Incoming incoming, ByteBuf message) {
        ByteBuf now = incoming.handled();
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
        sendFailure(correlation, text.substring(0, Math.min(text.length(), FAILURE_CHARS)));
    }

    private void sendFailure(long correlation, String text) {
        send(FAILURE, correlation, Unpooled.wrappedBuffer(text.getBytes(StandardCharsets.UTF_8)));
    }

    /** A reply cannot be sent: the request fails, if a failure can still be sent. Any thread. */
    void replyFailed(long correlation, Throwable cause) {
        if (!isGone()) {
            log.replyFailed(cause);
            sendFailure(correlation, cause);
        }
    }

    /** Whether nothing can be sent any more. Any thread. */
    public boolean isGone() {
        return closedHere || !channel.isActive();
    }

    /** Whether a client may begin something here. Any thread. */
    public boolean isUsable() {
        return !requests.isLeaving() && !isGone();
    }

    /** Sends a refusal, or a failure with text to a peer that does not know refusals: the request was not begun. */
    void sendOverloaded(long correlation, boolean refusable, long retryAfterNanos) {
        if (refusable) {
            sendTimed(OVERLOADED, correlation, retryAfterNanos, Unpooled.EMPTY_BUFFER);
        } else {
            sendFailure(correlation, "the server is overloaded, try again in " + inMillis(retryAfterNanos) + " ms");
        }
    }

    static long inMillis(long nanos) {
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
            try {
                head.writeBytes(payload);
            } catch (Throwable failure) {
                head.release();
                throw failure;
            }
            payload.release();
            return head;
        }
        return channel.alloc().compositeDirectBuffer(2).addComponents(true, head, payload);
    }

    public static ByteBuf checkUsable(@Nullable ByteBuf message) {
        if (message == null) {
            throw new NullPointerException("the message is null");
        }
        if (message.refCnt() == 0) {
            throw new IllegalReferenceCountException("the message has been released: its owner may send it once");
        }
        return message;
    }

    // ---- futures

    /** Why nothing can be sent or answered any more. Any thread. */
    public Throwable closed(String what, Throwable closed) {
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
        private final int headerBytes;

        Sent(int headerBytes) {
            super(channel, notifier);
            this.headerBytes = headerBytes;
        }

        private Throwable explain(Throwable cause) {
            if (cause instanceof MessageTooLargeException frame) {
                return tooLarge(frame.lengthBytes() - headerBytes, Math.max(0, frame.limitBytes() - headerBytes));
            }
            boolean isClosed = cause instanceof ClosedChannelException
                    || cause instanceof RejectedExecutionException
                    || cause.getClass() == ConnectionException.class; // one end had closed, but the channel had not yet
            return isClosed ? closed("send", cause) : cause;
        }

        /** Called before its outcome becomes visible. May be called more than once. */
        void ending() {}

        @Override
        public ChannelPromise setSuccess(@Nullable Void result) {
            ending();
            return super.setSuccess(null);
        }

        @Override
        public boolean trySuccess(@Nullable Void result) {
            ending();
            return super.trySuccess(null);
        }

        @Override
        public ChannelPromise setFailure(Throwable cause) {
            ending();
            return super.setFailure(explain(cause));
        }

        @Override
        public boolean tryFailure(Throwable cause) {
            ending();
            return super.tryFailure(explain(cause));
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            boolean cancelled = super.cancel(mayInterruptIfRunning);
            if (cancelled) {
                ending();
            }
            return cancelled;
        }

        @Override
        protected void checkDeadLock() {
            RdmaEventLoop.checkMayWait(executor());
        }
    }

    /** Counts the user's bytes: the limit in the handshake includes the header. */
    private static MessageTooLargeException tooLarge(long bytes, long limitBytes) {
        return new MessageTooLargeException(
                "a message of " + bytes + " bytes is over the peer's limit of " + limitBytes
                        + ": send it in parts, or raise MAX_MESSAGE_BYTES at the peer, and the limit of its receive"
                        + " buffers if they cannot hold it",
                bytes,
                limitBytes);
    }

    /** The future of a message that counts while it waits: when the future is done, there is room again. */
    private class Counted extends Sent {
        private final int bytes;
        private final AtomicBoolean counts = new AtomicBoolean(true);

        Counted(int bytes) {
            super(HEADER_BYTES);
            this.bytes = bytes;
        }

        @Override
        void ending() {
            if (counts.getAndSet(false)) {
                requests.giveBack(bytes);
            }
        }
    }

    /** The future of a reply, whose request has taken its time when the reply is sent. It listens to itself. */
    private final class Reply extends Counted implements ChannelFutureListener {
        private final long correlation;
        private final long arrivedNanos;

        Reply(int bytes, long correlation, long arrivedNanos) {
            super(bytes);
            this.correlation = correlation;
            this.arrivedNanos = arrivedNanos;
        }

        @Override
        public void operationComplete(ChannelFuture same) {
            if (!isSuccess()) {
                replyFailed(correlation, cause());
                return;
            }
            ConnectionStat stat = port.stat();
            if (stat != null && channel.eventLoop().inEventLoop()) {
                stat.answered0(System.nanoTime() - arrivedNanos);
            }
        }
    }

    // ---- requests

    /** Those of this end. */
    public Requests requests() {
        return requests;
    }

    /** Begins nothing further, and ends the connection when the last request has completed. Any thread. */
    public void leave() {
        requests.leave();
    }

    // ---- inbound

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
            case MESSAGE -> receive(virtual == null ? plain : Incoming.ofMessage(this), frame);
            case REQUEST -> receive(Incoming.ofRequest(this, correlation, port.arrivalNanos0()), frame);
            case TIMED_REQUEST -> receiveTimed(correlation, frame);
            case REPLY -> requests.answered0(correlation, frame, readBeganNanos);
            case FAILURE -> requests.failed0(correlation, frame, readBeganNanos);
            case OVERLOADED ->
                requests.refused0(correlation, TimeUnit.MICROSECONDS.toNanos(readMicros(OVERLOADED, frame)), frame);
            case LEAVING -> leaving(frame);
            case REFUSED -> refused(correlation, frame);
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

    /** The server wants no further requests here. */
    private void leaving(ByteBuf frame) {
        if (frame.readableBytes() < TIME_BYTES) {
            int bytes = HEADER_BYTES + frame.readableBytes();
            frame.release();
            throw notTheShortForm("of kind " + LEAVING + " and " + bytes + " bytes");
        }
        long millis = frame.readUnsignedInt();
        String reason = frame.toString(StandardCharsets.UTF_8);
        frame.release();
        requests.serverLeaves0(TimeUnit.MILLISECONDS.toNanos(millis), reason);
    }

    private void refused(long correlation, ByteBuf frame) {
        int why = frame.isReadable() ? frame.readUnsignedByte() : 0;
        if (why != REFUSED_LEAVING) {
            frame.release();
            throw notTheShortForm("of kind " + REFUSED + " for reason " + why);
        }
        requests.refusedLeaving0(correlation, frame);
    }

    private static IllegalStateException notTheShortForm(String what) {
        return new IllegalStateException("a message " + what + " is not from an RdmaClient or RdmaServer: have the peer"
                + " use one, or serve it with a plain RdmaChannel");
    }

    /** Reads the time behind the header of timed requests and refusals. */
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
        receive(Incoming.ofTimedRequest(this, correlation, port.arrivalNanos0(), timeNanos), frame);
    }

    private void receive(Incoming incoming, ByteBuf message) {
        VirtualHandlers elsewhere = virtual;
        if (elsewhere != null) {
            elsewhere.start(incoming, message);
            return;
        }
        ByteBuf outer = handled;
        handled = message;
        try {
            handle(incoming, message);
        } finally {
            handled = outer;
        }
    }

    /**
     * Runs the handler, unless its client no longer waits for the reply or the server is overloaded, then releases its
     * message. On a connection that is gone, messages are handled and requests are not. On the loop, or on a virtual
     * thread.
     */
    void handle(Incoming incoming, ByteBuf message) {
        if (incoming.isRequest() && isGone()) {
            message.release();
            counters.countAbandoned();
            return;
        }
        if (incoming.isExpired()) {
            message.release();
            counters.countExpired();
            return;
        }
        if (queueAge != null && incoming.isRequest()) {
            long now = System.nanoTime();
            long waitedNanos = now - incoming.arrivedNanos();
            if (queueAge.refuses(waitedNanos, now)) {
                refuse(incoming, message, waitedNanos);
                return;
            }
        }
        Throwable failure = null;
        try {
            handler.onMessage(incoming, message);
        } catch (Throwable thrown) {
            failure = thrown;
        }
        if (message.refCnt() > 0) {
            message.release();
        } else if (failure == null) {
            failure = gaveAway();
        }
        if (failure != null) {
            log.failed(incoming, failure);
            incoming.fail(failure);
        }
    }

    /** Refuses a request, since the server is overloaded. On the loop, or on a virtual thread. */
    void refuse(Incoming incoming, ByteBuf message, long retryAfterNanos) {
        message.release();
        counters.countOverloaded();
        incoming.refuse(retryAfterNanos);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        updateReading0();
        LinkOwner client = owner;
        if (client != null && channel.isWritable()) {
            client.writable();
        }
        context.fireChannelWritabilityChanged();
    }

    /** Reads as long as the peer accepts data and handlers keep up. */
    @Override
    public void read(ChannelHandlerContext context) {
        if (isPaused0()) {
            isReadHeld = true;
            isHeldByAutoRead = channel.config().isAutoRead();
        } else {
            context.read();
        }
    }

    private boolean isPaused0() {
        return pausesReading && (!channel.isWritable() || (virtual != null && virtual.isFull0()));
    }

    /** Resumes reading if its cause to wait is gone. */
    void updateReading0() {
        if (isReadHeld && !isPaused0()) {
            isReadHeld = false;
            if (!isHeldByAutoRead || channel.config().isAutoRead()) { // the program may have switched it off by now
                self.read();
            }
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
            warn(channel + ": " + (cause.getMessage() == null ? cause : cause.getMessage()));
            LOG.debug("{}", channel, cause);
        }
        channel.close();
    }

    /** Anyone who reaches a server's port can cause these lines, so their number is limited. */
    private void warn(String line) {
        RateLimitedLog strangers = port.strangers();
        if (strangers == null) {
            LOG.warn("{}", line);
        } else {
            strangers.warn(line);
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        requests.end0();
        context.fireChannelInactive();
    }
}
