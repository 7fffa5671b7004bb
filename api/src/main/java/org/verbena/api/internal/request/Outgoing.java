package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelPromise;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.DeferredMessage;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.RequestFailure;

/** What a connection of the short form sends: frames, and the futures that say what became of them. Any thread. */
final class Outgoing {
    /** How much of an exception's text is sent to the peer, in characters. */
    private static final int FAILURE_CHARS = 1000;

    private final Messenger messenger;
    private final MessagePort port;
    private final Channel channel;

    /** Runs the listeners of this connection's futures. */
    private final EventExecutor notifier;

    private final SendLimit limit;
    private final HandlerLog log;

    /** Whether to send the handler's exception to a peer whose request failed. */
    private final boolean describesFailures;

    /** Set before any thread can send. */
    @SuppressWarnings("NullAway.Init")
    private ChannelHandlerContext context;

    Outgoing(Messenger messenger, MessagePort port, SendLimit limit, HandlerLog log, boolean describesFailures) {
        this.messenger = messenger;
        this.port = port;
        channel = port.channel();
        notifier = messenger.notifier();
        this.limit = limit;
        this.log = log;
        this.describesFailures = describesFailures;
    }

    /** Sends from here on, when the pipeline has the messenger. */
    void begin0(ChannelHandlerContext here) {
        context = here;
    }

    /**
     * Sends a message that counts against no limit.
     *
     * @param payload its ownership is taken
     * @return done when the send has completed
     */
    Future<Void> send(int kind, long correlation, @Nullable ByteBuf payload) {
        return send(kind, correlation, Frames.NO_TIME, payload, new Sent(this));
    }

    /** As {@link #send(int, long, ByteBuf)}, with a time behind the header. */
    private Future<Void> sendTimed(int kind, long correlation, long timeNanos, ByteBuf payload) {
        return send(kind, correlation, Frames.micros(timeNanos), payload, new Sent(this));
    }

    /**
     * Sends a request, which makes its frame when its turn comes.
     *
     * @param headers what goes with it
     * @return done when the send has completed
     */
    Future<Void> request(DeferredMessage request, Headers headers) {
        Sent sent = new Sent(this);
        try {
            checkLength(headers, Messenger.checkUsable(request.content()));
        } catch (RuntimeException cause) {
            return sent.setFailure(cause);
        }
        return context.writeAndFlush(request, sent);
    }

    /**
     * Sends a plain message, unless too much waits to be sent. On a connection that its client leaves, the client goes
     * on with it: its server reads nothing behind a leave.
     *
     * @param payload its ownership is taken
     * @return done when the send has completed
     */
    Future<Void> message(@Nullable ByteBuf payload) {
        return message(payload, false);
    }

    /**
     * As {@link #message(ByteBuf)}. On a connection that is gone, the client continues with it as well, if asked to.
     *
     * @param payload its ownership is taken
     */
    Future<Void> message(@Nullable ByteBuf payload, boolean mayRedirect) {
        int bytes = payload == null ? 0 : payload.readableBytes();
        if (!limit.tryTake(bytes)) {
            ReferenceCountUtil.safeRelease(payload);
            return notifier.newFailedFuture(limit.refusal("send", channel.remoteAddress(), bytes));
        }
        ClientTransport.Owner client = messenger.owner();
        boolean isUsable =
                mayRedirect ? messenger.isUsable() : !messenger.requests().isLeaving();
        if (client != null && payload != null && !isUsable) {
            Promise<Void> outcome = notifier.newPromise();
            try {
                boolean hasGone = client.goOn(outcome, Operation.SEND, payload, Long.MAX_VALUE, true);
                if (!hasGone) { // nor can it be sent behind a leave: it would be lost
                    payload.release();
                    outcome.tryFailure(messenger.closed("send", new ClosedChannelException()));
                }
            } finally { // whatever is thrown, for want of memory
                messenger.requests().giveBack(bytes);
            }
            return outcome;
        }
        return send(Frames.MESSAGE, 0, Frames.NO_TIME, payload, new Counted(this, bytes));
    }

    /**
     * Sends a message whose frame is made, unless too much waits to be sent.
     *
     * @param frame its ownership is taken
     * @return done when the send has completed
     */
    Future<Void> frame(ByteBuf frame) {
        int bytes = frame.readableBytes() - Frames.HEADER_BYTES;
        if (!limit.tryTake(bytes)) {
            frame.release();
            return notifier.newFailedFuture(limit.refusal("send", channel.remoteAddress(), bytes));
        }
        Counted sent = new Counted(this, bytes);
        if (bytes > port.maxMessageBytes()) {
            frame.release();
            return sent.setFailure(tooLarge(bytes));
        }
        return context.writeAndFlush(frame, sent);
    }

    /** The peer's limit counts what its program gets: the message, and the metadata that comes with it. */
    private void checkLength(Headers headers, @Nullable ByteBuf payload) {
        int bytes = (headers.isEmpty() ? 0 : headers.bytes() - Headers.LENGTH_BYTES)
                + (payload == null ? 0 : payload.readableBytes());
        if (bytes > port.maxMessageBytes()) {
            throw tooLarge(bytes);
        }
    }

    /**
     * Sends the reply to a request that arrived then. If it cannot be sent, the request fails at once. It counts but is
     * never refused, since the peer has requested it.
     */
    Future<Void> reply(long correlation, @Nullable ByteBuf payload, long arrivedNanos) {
        return answer(Frames.REPLY, correlation, payload, arrivedNanos);
    }

    /** As {@link #reply(long, ByteBuf, long)}, with headers. */
    Future<Void> reply(long correlation, @Nullable ByteBuf payload, long arrivedNanos, Headers headers) {
        if (headers.isEmpty()) {
            return reply(correlation, payload, arrivedNanos);
        }
        int bytes = headers.bytes() + (payload == null ? 0 : payload.readableBytes());
        limit.take(bytes);
        Reply sent = new Reply(this, bytes, correlation, arrivedNanos);
        sent.addListener(sent);
        ByteBuf frame;
        try {
            checkLength(headers, payload);
            frame = Frames.ofHeadedReply(channel.alloc(), correlation, headers, Messenger.checkUsable(payload));
        } catch (RuntimeException | Error cause) {
            return refuse(payload, sent, cause);
        }
        return context.writeAndFlush(frame, sent);
    }

    /**
     * Writes a frame of a stream, which counts against no limit here. It is sent with the next {@link #flush}.
     *
     * @param number as it is on the wire
     * @param payload its ownership is taken
     * @return done when the send has completed
     */
    Future<Void> write(int kind, long number, @Nullable ByteBuf payload) {
        Sent sent = new Sent(this);
        ByteBuf frame = frameFor(sent, kind, number, Frames.NO_TIME, payload);
        return frame == null ? sent : context.write(frame, sent);
    }

    void flush() {
        context.flush();
    }

    /** Makes the payload of a frame that has headers and nothing else; empty for none. */
    ByteBuf headersOf(Headers headers) {
        if (headers.isEmpty()) {
            return Unpooled.EMPTY_BUFFER;
        }
        ByteBuf payload = channel.alloc().buffer(headers.bytes());
        headers.write(payload);
        return payload;
    }

    /**
     * Ends a stream that answers a request. It counts as a reply does.
     *
     * @param headers what goes with it
     */
    void streamEnd(long correlation, Headers headers) {
        limit.take(0);
        Counted sent = new Counted(this, 0);
        sent.addListener(done -> {
            if (!done.isSuccess()) {
                replyFailed(correlation, done.cause());
            }
        });
        ByteBuf payload;
        try {
            payload = headersOf(headers);
        } catch (RuntimeException | Error noMemory) {
            sent.setFailure(noMemory);
            return;
        }
        send(Frames.END, correlation | Frames.ANSWERING, Frames.NO_TIME, payload, sent);
    }

    private Future<Void> answer(int kind, long correlation, @Nullable ByteBuf payload, long arrivedNanos) {
        int bytes = payload == null ? 0 : payload.readableBytes();
        limit.take(bytes);
        Reply sent = new Reply(this, bytes, correlation, arrivedNanos);
        sent.addListener(sent);
        return send(kind, correlation, Frames.NO_TIME, payload, sent);
    }

    private Future<Void> send(int kind, long correlation, long timeMicros, @Nullable ByteBuf payload, Sent sent) {
        ByteBuf frame = frameFor(sent, kind, correlation, timeMicros, payload);
        return frame == null ? sent : context.writeAndFlush(frame, sent);
    }

    /** Writes a message of the program's to the channel behind the messenger. Event loop only. */
    void write0(ByteBuf payload, ChannelPromise promise) {
        if (messenger.requests().hasLeft0()) {
            refuse(payload, promise, messenger.closed("send", new ClosedChannelException()));
            return;
        }
        ByteBuf frame = frameFor(promise, Frames.MESSAGE, 0, Frames.NO_TIME, payload);
        if (frame != null) {
            context.write(frame, promise);
        }
    }

    /** Null if there is none; then the promise has failed. */
    private @Nullable ByteBuf frameFor(
            ChannelPromise promise, int kind, long correlation, long timeMicros, @Nullable ByteBuf payload) {
        try {
            if (Frames.isOfProgram(kind)) {
                checkLength(Headers.NONE, payload);
            }
            return Frames.of(channel.alloc(), kind, correlation, timeMicros, Messenger.checkUsable(payload));
        } catch (RuntimeException | Error cause) {
            refuse(payload, promise, cause);
            return null;
        }
    }

    /** The message is null or released, or there is no memory for its header. */
    private static ChannelPromise refuse(@Nullable ByteBuf payload, ChannelPromise promise, Throwable cause) {
        if (payload != null && payload.refCnt() > 0) {
            payload.release();
        }
        return promise.setFailure(cause);
    }

    void failure(long correlation, Throwable cause) {
        failure(correlation, describesFailures ? first(String.valueOf(cause)) : "");
    }

    void failure(long correlation, String text) {
        send(Frames.FAILURE, correlation, Unpooled.wrappedBuffer(text.getBytes(StandardCharsets.UTF_8)));
    }

    private static String first(String words) {
        return words.substring(0, Math.min(words.length(), FAILURE_CHARS));
    }

    /** The request has failed in the program's way. If that cannot be sent, it fails as {@link #reply} says. */
    void error(long correlation, RequestFailure failure, long arrivedNanos) {
        byte[] text = first(String.valueOf(failure.getMessage())).getBytes(StandardCharsets.UTF_8);
        byte[] rest = failure.payload();
        ByteBuf payload;
        try {
            payload = channel.alloc().buffer(Frames.ERROR_BYTES + text.length + rest.length);
        } catch (RuntimeException | Error noMemory) {
            replyFailed(correlation, noMemory);
            return;
        }
        payload.writeInt(failure.code())
                .writeShort(text.length)
                .writeBytes(text)
                .writeBytes(rest);
        answer(Frames.ERROR, correlation, payload, arrivedNanos);
    }

    /** A reply cannot be sent: the request fails, if a failure can still be sent. */
    void replyFailed(long correlation, Throwable cause) {
        if (!messenger.isGone()) {
            log.replyFailed(cause);
            failure(correlation, cause);
        }
    }

    /** Refuses a request that has not begun, since the server is overloaded. */
    void overloaded(long correlation, long retryAfterNanos) {
        sendTimed(Frames.OVERLOADED, correlation, retryAfterNanos, Unpooled.EMPTY_BUFFER);
    }

    /** Asks the client to send nothing new here. It may connect again at once, if it can. Never throws. */
    Future<Void> leaving(String reason) {
        byte[] words = reason.getBytes(StandardCharsets.UTF_8);
        return sendTimed(Frames.LEAVING, 0, 0, Unpooled.wrappedBuffer(words));
    }

    /** Refuses a request that has not begun, since this end is leaving. Never throws. */
    void refusedLeaving(long correlation) {
        send(Frames.REFUSED, correlation, Unpooled.wrappedBuffer(new byte[] {Frames.REFUSED_LEAVING}));
    }

    /** Refuses a request that has not begun. */
    void refused(long correlation, int why, String words) {
        byte[] text = first(words).getBytes(StandardCharsets.UTF_8);
        byte[] payload = new byte[1 + text.length];
        payload[0] = (byte) why;
        System.arraycopy(text, 0, payload, 1, text.length);
        send(Frames.REFUSED, correlation, Unpooled.wrappedBuffer(payload));
    }

    /** The future of a send; on a closed connection it fails with the reason why it is closed. */
    private static class Sent extends DefaultChannelPromise {
        /** A field of its own, since each inner class of a hierarchy would add one. */
        final Outgoing outgoing;

        Sent(Outgoing outgoing) {
            super(outgoing.channel, outgoing.notifier);
            this.outgoing = outgoing;
        }

        private Throwable explain(Throwable cause) {
            Messenger messenger = outgoing.messenger;
            if (cause instanceof ConnectionException.NotDone) { // one end had closed, but the channel had not yet
                return new ConnectionException.NotDone(
                        String.valueOf(messenger.closed("send", cause).getMessage()), cause);
            }
            return cause instanceof ClosedChannelException || cause instanceof RejectedExecutionException
                    ? messenger.closed("send", cause)
                    : cause;
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

    private MessageTooLargeException tooLarge(int bytes) {
        int limitBytes = port.maxMessageBytes();
        return new MessageTooLargeException(
                "a message of " + bytes + " bytes is over the peer's limit of " + limitBytes
                        + ": send it in parts, or raise MAX_MESSAGE_BYTES at the peer, and the limit of its receive"
                        + " buffers if they cannot hold it",
                bytes,
                limitBytes);
    }

    /** The future of a message that counts while it waits: when the future is done, there is room again. */
    private static class Counted extends Sent {
        private static final AtomicIntegerFieldUpdater<Counted> COUNTED =
                AtomicIntegerFieldUpdater.newUpdater(Counted.class, "counted");

        private static final int NOTHING = -1;

        /** The bytes that count, or {@link #NOTHING}. */
        private volatile int counted;

        Counted(Outgoing outgoing, int bytes) {
            super(outgoing);
            counted = bytes;
        }

        @Override
        void ending() {
            int bytes = counted;
            if (bytes != NOTHING && COUNTED.compareAndSet(this, bytes, NOTHING)) {
                outgoing.messenger.requests().giveBack(bytes);
            }
        }
    }

    /** The future of a reply, whose request has taken its time when the reply is sent. It listens to itself. */
    private static final class Reply extends Counted implements ChannelFutureListener {
        private final long correlation;
        private final long arrivedNanos;

        Reply(Outgoing outgoing, int bytes, long correlation, long arrivedNanos) {
            super(outgoing, bytes);
            this.correlation = correlation;
            this.arrivedNanos = arrivedNanos;
        }

        @Override
        public void operationComplete(ChannelFuture same) {
            if (!isSuccess()) {
                outgoing.replyFailed(correlation, cause());
                return;
            }
            ConnectionStat stat = outgoing.port.stat();
            if (stat != null && channel().eventLoop().inEventLoop()) {
                stat.answered0(outgoing.messenger.clock().nanoTime() - arrivedNanos);
            }
        }
    }
}
