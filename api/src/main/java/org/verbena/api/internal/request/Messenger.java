package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.util.IllegalReferenceCountException;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.spi.LoopClock;

/**
 * The last handler in the pipeline of the short form's channels. It reads {@link Frames} and passes them on: messages
 * to {@link Handlers}, and answers to {@link Requests}. {@link Outgoing} sends.
 */
public final class Messenger extends ChannelDuplexHandler implements ClientTransport {
    private final MessagePort port;
    private final Channel channel;

    /**
     * Whether to read nothing while the channel is unwritable. Only one end may do so, or both could wait for each
     * other.
     */
    private final boolean pausesReading;

    private final HandlerLog log;

    /** Runs the listeners of this connection's futures. */
    private final EventExecutor notifier;

    private final SendLimit limit;
    private final Requests requests;
    private final Outgoing outgoing;
    private final Handlers handlers;
    private final Streams streams;

    /** Null for a server's connection. */
    private final ClientTransport.@Nullable Owner owner;

    private final LoopClock clock;

    // Written by the loop, read by any thread.
    private volatile @Nullable Throwable firstCause;
    private volatile boolean closedHere;
    private volatile boolean closedThere;

    /** Set when it is added to the pipeline, before any thread can send. */
    @SuppressWarnings("NullAway.Init")
    private ChannelHandlerContext self;

    // Confined to the event loop.
    /** When the first message of this read arrived. */
    private long readBeganNanos;

    private boolean inRead;

    /** The pipeline has requested a read, which waits until the peer accepts data and handlers keep up. */
    private boolean isReadHeld;

    /** Auto-read requested it. */
    private boolean isHeldByAutoRead;

    private Messenger(MessagePort port, Serving serving, ClientTransport.@Nullable Owner owner) {
        this.port = port;
        channel = port.channel();
        this.owner = owner;
        pausesReading = owner == null;
        log = new HandlerLog(port, serving.logLimits());
        notifier = ((RdmaEventLoop) channel.eventLoop()).notifier();
        clock = LoopGroup.clockOf(channel.eventLoop());
        limit = new SendLimit(serving.bounds());
        LongAdder lateReplies = owner == null ? new LongAdder() : owner.lateReplies();
        requests = new Requests(this, lateReplies, limit, serving.maxRequests());
        outgoing = new Outgoing(this, port, limit, log, serving.describesFailures());
        handlers = new Handlers(this, serving, log);
        streams = new Streams(this, serving.bounds());
    }

    public static Messenger ofClient(MessagePort port, Serving serving, ClientTransport.Owner owner) {
        return new Messenger(port, serving, owner);
    }

    public static Messenger ofServer(MessagePort port, Serving serving) {
        return new Messenger(port, serving, null);
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        self = context;
        outgoing.begin0(context);
        port.beginShortForm0(streams.unsent()::waitingBytes);
    }

    @Override
    public Channel channel() {
        return channel;
    }

    /** The clock of its loop. */
    LoopClock clock() {
        return clock;
    }

    /** The client that this connection belongs to; null for a server's connection. */
    ClientTransport.@Nullable Owner owner() {
        return owner;
    }

    /** How many operations of this end are under way, which costs a reader no lock: the figure may lag. Any thread. */
    @Override
    public int load() {
        return requests.load() + limit.messages();
    }

    /** What {@link #load()} says, and the requests that have failed lately. Any thread. */
    @Override
    public int burden() {
        return load() + requests.recentFailures();
    }

    /** How many messages and one-sided operations the connection has carried. Any thread. */
    @Override
    public long carried() {
        MessageStatistics now = port.statistics();
        return now.messagesSent() + now.messagesReceived() + now.oneSidedOperations();
    }

    /** What {@code verbena stat} shows about the channel; null if nothing. Any thread. */
    public @Nullable ConnectionStat stat() {
        return port.stat();
    }

    Outgoing outgoing() {
        return outgoing;
    }

    Handlers handlers() {
        return handlers;
    }

    Streams streams() {
        return streams;
    }

    /** Null stays null, which sending refuses. */
    public static @Nullable ByteBuffer buffer(byte @Nullable [] message) {
        return message == null ? null : ByteBuffer.wrap(message);
    }

    /** Sends a plain message, unless too much waits to be sent; takes ownership of it. Any thread. */
    public Future<Void> send(@Nullable ByteBuf message) {
        return outgoing.message(message);
    }

    /** As {@link #send(ByteBuf)}, with a copy. */
    public CompletableFuture<Void> send(byte @Nullable [] message) {
        return send(buffer(message));
    }

    /** As {@link #send(ByteBuf)}, with a copy of what remains. */
    public CompletableFuture<Void> send(@Nullable ByteBuffer message) {
        ByteBuf copy;
        try {
            copy = Frames.copyOf(channel.alloc(), message);
        } catch (RuntimeException | Error noMemory) {
            return completable(notifier.newFailedFuture(noMemory));
        }
        return completable(outgoing.message(copy));
    }

    /**
     * Makes a frame that all connections of a device can send, each a duplicate of it; the message stays its owner's.
     */
    public static ByteBuf frameOf(ByteBufAllocator device, ByteBuf message) {
        return Frames.forMany(device, message);
    }

    /** Sends a message whose frame is made, unless too much waits to be sent; takes ownership of it. Any thread. */
    public Future<Void> sendFrame(ByteBuf frame) {
        return outgoing.frame(frame);
    }

    /** The same future in the JDK's type. */
    <T> CompletableFuture<T> completable(Future<T> future) {
        return LoopFuture.of(future);
    }

    /** Runs the listeners of this connection's futures: they are called whether or not its loop has ended. */
    @Override
    public EventExecutor notifier() {
        return notifier;
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
        outgoing.write0(payload, promise);
    }

    /** Whether nothing can be sent any more. Any thread. */
    public boolean isGone() {
        return closedHere || closedThere || !channel.isActive();
    }

    /** Whether the peer has closed: the channel is active until both ends have disconnected. Event loop only. */
    boolean hasPeerClosed0() {
        if (!closedThere && port.hasPeerClosed0()) {
            closedThere = true;
        }
        return closedThere;
    }

    /** Whether a client may begin something here. Any thread. */
    @Override
    public boolean isUsable() {
        return !requests.isLeaving() && !isGone();
    }

    static long inMillis(long nanos) {
        return Math.max(1, TimeUnit.NANOSECONDS.toMillis(nanos));
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

    // ---- of a client

    @Override
    public boolean isConnected() {
        return channel.isActive();
    }

    @Override
    public boolean isWritable() {
        return channel.isWritable();
    }

    @Override
    public long replyNanos() {
        return requests.replyNanos();
    }

    @Override
    public boolean isUnproven() {
        return requests.isUnproven();
    }

    @Override
    public long leavingNanos() {
        return requests.leavingNanos();
    }

    @Override
    public UnsentItems unsent() {
        return streams.unsent();
    }

    @Override
    public <T> Future<T> start(
            Operation<T> operation,
            @Nullable ByteBuf message,
            long timeoutNanos,
            boolean hasFullTimeout,
            boolean mayRedirect) {
        return operation.start(this, message, timeoutNanos, hasFullTimeout, mayRedirect);
    }

    @Override
    public void abandon(Future<?> request) {
        requests.abandon(request);
    }

    @Override
    public void countUnanswered() {
        requests.countUnanswered();
    }

    @Override
    public ByteBufAllocator alloc() {
        return channel.alloc();
    }

    @Override
    public java.util.concurrent.Future<?> schedule(Runnable step, long delayNanos) {
        return channel.eventLoop().schedule(step, delayNanos, TimeUnit.NANOSECONDS);
    }

    @Override
    public CompletableFuture<Void> close() {
        return ShortForm.close(channel);
    }

    @Override
    public void whenClosed(Runnable step) {
        channel.closeFuture().addListener(closed -> step.run());
    }

    @Override
    public Throwable closeCause() {
        return closed("the connection", new ClosedChannelException());
    }

    @Override
    public String toString() {
        return channel.toString();
    }

    // ---- futures

    /** Why nothing can be sent or answered any more. Any thread. */
    Throwable closed(String what, Throwable closed) {
        Throwable cause = firstCause;
        String subject = what + " to " + channel.remoteAddress() + ": ";
        if (cause != null) {
            return new ConnectionException.Lost(subject + "the connection is lost: " + cause.getMessage(), cause);
        }
        return closedHere
                ? new ConnectionException(subject + "this end has closed the connection", closed)
                : new ConnectionException(subject + "the peer has closed the connection", closed);
    }

    // ---- requests

    /** The requests of this end. */
    public Requests requests() {
        return requests;
    }

    /** Begins nothing further, and ends the connection when the last request has completed. Any thread. */
    @Override
    public void leave() {
        requests.leave();
    }

    // ---- the end of a server's connection

    /**
     * Asks the client to leave, unless it was asked before. Any thread.
     *
     * @return done when the connection has ended and no handler runs for it: with whether it has answered all
     */
    CompletableFuture<Boolean> drain(String reason) {
        ConnectionDrain drain = new ConnectionDrain(this);
        try {
            channel.eventLoop().execute(() -> drain0(drain, reason));
        } catch (RejectedExecutionException ended) {
            drain0(drain, reason);
        }
        return drain.done();
    }

    private void drain0(ConnectionDrain drain, String reason) {
        ConnectionDrain earlier = handlers.drain();
        if (earlier == null) {
            handlers.drain0(drain);
            drain.begin0(reason);
        } else {
            earlier.done().thenAccept(drain.done()::complete);
        }
    }

    /**
     * Closes the connection, and refuses what has not begun. Any thread.
     *
     * @return whether all that had arrived was answered, and the answers were sent
     */
    CompletableFuture<Boolean> end() {
        CompletableFuture<Boolean> answered = new CompletableFuture<>();
        try {
            channel.eventLoop().execute(() -> {
                boolean all = hasAnsweredAll();
                try {
                    if (!isGone()) {
                        handlers.refuseUnbegun0();
                    }
                } finally { // whatever is thrown, for want of memory: the server must end
                    channel.close();
                    answered.complete(all); // which may close the server, here and now
                }
            });
        } catch (RejectedExecutionException ended) {
            answered.complete(hasAnsweredAll());
        }
        return answered;
    }

    private boolean hasAnsweredAll() {
        ConnectionDrain drain = handlers.drain();
        return handlers.isIdle() && limit.messages() == 0 && (drain == null || drain.hasAnsweredAll());
    }

    // ---- inbound

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (!inRead) {
            inRead = true;
            readBeganNanos = clock.nanoTime();
        }
        ByteBuf frame = (ByteBuf) message;
        if (frame.readableBytes() < Frames.HEADER_BYTES) {
            int bytes = frame.readableBytes();
            frame.release();
            throw Frames.notTheShortForm("of " + bytes + " bytes");
        }
        long header = frame.readLong();
        int kind = Frames.kind(header);
        long correlation = Frames.correlation(header);
        switch (kind) {
            case Frames.MESSAGE -> handlers.message0(frame);
            case Frames.TIMED_REQUEST -> receiveTimed(correlation, frame);
            case Frames.HEADED_REQUEST -> receiveHeaded(correlation, frame);
            case Frames.HEADED_REPLY -> {
                Headers headers = Frames.readHeaders(kind, frame);
                if (headers == null) {
                    frame.release();
                    throw Frames.notTheShortForm("of kind " + kind + " with too many headers");
                }
                requests.answered0(correlation, headers, frame, readBeganNanos);
            }
            case Frames.REPLY -> requests.answered0(correlation, frame, readBeganNanos);
            case Frames.FAILURE -> requests.failed0(correlation, frame, readBeganNanos);
            case Frames.OVERLOADED ->
                requests.refused0(
                        correlation, TimeUnit.MICROSECONDS.toNanos(Frames.readTime(Frames.OVERLOADED, frame)), frame);
            case Frames.CANCEL -> {
                int bytes = frame.readableBytes();
                frame.release();
                if (bytes > 0) {
                    throw Frames.notTheShortForm(
                            "of kind " + kind + " and " + (Frames.HEADER_BYTES + bytes) + " bytes");
                }
                handlers.cancel0(correlation);
            }
            case Frames.ITEM, Frames.END, Frames.ITEM_CREDIT, Frames.ITEMS_HEADERS ->
                streams.receive0(kind, correlation, frame, readBeganNanos);
            case Frames.LEAVING -> leaving(frame);
            case Frames.REFUSED -> refused(correlation, frame);
            case Frames.ERROR -> requests.error0(correlation, frame, readBeganNanos);
            case Frames.LEAVE -> {
                frame.release();
                channel.close();
            }
            default -> {
                frame.release();
                throw Frames.notTheShortForm("of kind " + kind);
            }
        }
    }

    /** The server wants no further requests here. */
    private void leaving(ByteBuf frame) {
        long millis = Frames.readTime(Frames.LEAVING, frame);
        String reason = frame.toString(StandardCharsets.UTF_8);
        frame.release();
        requests.serverLeaves0(TimeUnit.MILLISECONDS.toNanos(millis), reason);
    }

    private void refused(long correlation, ByteBuf frame) {
        int why = frame.isReadable() ? frame.readUnsignedByte() : 0;
        switch (why) {
            case Frames.REFUSED_LEAVING -> requests.refusedLeaving0(correlation, frame);
            case Frames.REFUSED_UNKNOWN, Frames.REFUSED_NOT_AUTHORIZED, Frames.REFUSED_LIMIT ->
                requests.refused0(correlation, why, frame);
            default -> {
                frame.release();
                throw Frames.notTheShortForm("of kind " + Frames.REFUSED + " for reason " + why);
            }
        }
    }

    private void receiveTimed(long correlation, ByteBuf frame) {
        int bytes = frame.readableBytes();
        if (!handlers.takes0(Frames.TIMED_REQUEST, correlation, frame)) {
            return;
        }
        long timeNanos = timeNanos(Frames.readTime(Frames.TIMED_REQUEST, frame));
        handlers.request0(Incoming.ofTimedRequest(this, correlation, port.arrivalNanos0(), timeNanos), frame, bytes);
    }

    private static long timeNanos(long micros) {
        return micros == Frames.UNLIMITED_MICROS ? Long.MAX_VALUE : TimeUnit.MICROSECONDS.toNanos(micros);
    }

    private void receiveHeaded(long correlation, ByteBuf frame) {
        int bytes = frame.readableBytes();
        if (!handlers.takes0(Frames.HEADED_REQUEST, correlation, frame)) {
            return;
        }
        long timeNanos = timeNanos(Frames.readTime(Frames.HEADED_REQUEST, frame));
        int flags = frame.isReadable() ? frame.readUnsignedByte() : 0;
        Headers headers = Frames.readHeaders(Frames.HEADED_REQUEST, frame);
        if (headers == null || (flags & ~(Frames.IDEMPOTENT | Frames.STREAM)) != 0) {
            frame.release();
            if (headers == null) {
                outgoing.refused(correlation, Frames.REFUSED_LIMIT, "more headers than this end takes");
            } else {
                outgoing.refused(correlation, Frames.REFUSED_UNKNOWN, "this end does not know flags " + flags);
            }
            return;
        }
        Incoming request = Incoming.ofHeadedRequest(this, correlation, port.arrivalNanos0(), timeNanos, headers);
        if ((flags & Frames.STREAM) != 0 && !beginsStream(request, frame)) {
            return;
        }
        handlers.request0(request, frame, bytes);
    }

    /** If not, releases its message, and refuses it unless it is against the rules. */
    private boolean beginsStream(Incoming request, ByteBuf message) {
        long correlation = request.correlation();
        int bytes = message.readableBytes();
        if ((correlation & Frames.ANSWERING) != 0) {
            message.release();
            throw Frames.breach(Frames.HEADED_REQUEST, correlation, "has the number of an answer");
        }
        if (!streams.hasRoom0() || !handlers.takesStream0(bytes)) {
            message.release();
            outgoing.refused(
                    correlation, Frames.REFUSED_LIMIT, "more streams than this end takes, which are " + Streams.MAX);
            return false;
        }
        streams.begin0(request);
        return true;
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        updateReading0();
        ClientTransport.Owner client = owner;
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
        return pausesReading && (!channel.isWritable() || handlers.isFull0());
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
            log.onHandled(clock.nanoTime() - readBeganNanos);
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
            log.lost(cause);
        }
        channel.close();
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        requests.end0();
        handlers.end0();
        streams.end0();
        context.fireChannelInactive();
    }
}
