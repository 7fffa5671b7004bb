package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.collection.LongObjectHashMap;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The short form's end of a channel's pipeline. Each message begins with 8 bytes that say what it is and which request it belongs to:
 *
 * <pre>{@code
 *  0      1                  8
 * | kind | correlation      | payload ...     big endian; correlation is 0 for plain messages
 * }</pre>
 */
final class Messenger extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    static final int MESSAGE = 0;
    static final int REQUEST = 1;
    static final int REPLY = 2;
    static final int FAILURE = 3;

    private static final int HEADER_BYTES = 8;
    private static final int KIND_SHIFT = 56;
    private static final long CORRELATION_MASK = (1L << KIND_SHIFT) - 1;

    /** Up to here, copying a message behind its header is cheaper than sending it in two pieces. */
    private static final int COPIED_BYTES = 2048;

    /** How much of an exception's text is told to the peer, in characters. */
    private static final int FAILURE_CHARS = 1000;

    /** Times that are further apart could not be compared. */
    private static final long MAX_TIMEOUT_NANOS = Long.MAX_VALUE >> 1;

    private final RdmaChannel channel;
    private final MessageHandler handler;

    /** Whether to stop reading while the channel is unwritable; on one side only, or both could wait for each other. */
    private final boolean pausesReading;

    private final LongAdder lateReplies = new LongAdder();

    // The loop's.
    private final LongObjectHashMap<Request<?>> pending = new LongObjectHashMap<>();
    private final Exchange plain = new Exchange(this, 0, false);
    private long lastCorrelation;
    private @Nullable Throwable firstCause;
    private boolean inactive;
    private @Nullable Future<?> sweep;
    private long sweepNanos;

    Messenger(RdmaChannel channel, MessageHandler handler, boolean pausesReading) {
        this.channel = channel;
        this.handler = handler;
        this.pausesReading = pausesReading;
    }

    RdmaChannel channel() {
        return channel;
    }

    long lateReplies() {
        return lateReplies.sum();
    }

    ByteBuf copy(byte[] bytes) {
        return channel.alloc().buffer(bytes.length).writeBytes(bytes);
    }

    Future<Void> send(int kind, long correlation, ByteBuf payload) {
        return channel.writeAndFlush(frame(kind, correlation, payload));
    }

    void sendFailure(long correlation, Throwable cause) {
        String text = String.valueOf(cause);
        send(
                FAILURE,
                correlation,
                copy(text.substring(0, Math.min(text.length(), FAILURE_CHARS)).getBytes(StandardCharsets.UTF_8)));
    }

    private ByteBuf frame(int kind, long correlation, ByteBuf payload) {
        long header = (long) kind << KIND_SHIFT | correlation;
        int bytes = payload.readableBytes();
        if (bytes <= COPIED_BYTES) {
            ByteBuf whole = channel.alloc().directBuffer(HEADER_BYTES + bytes);
            whole.writeLong(header).writeBytes(payload);
            payload.release();
            return whole;
        }
        ByteBuf head = channel.alloc().directBuffer(HEADER_BYTES).writeLong(header);
        return channel.alloc().compositeDirectBuffer(2).addComponents(true, head, payload);
    }

    // ---- requests
    // ----------------------------------------------------------------------------------------------------------------------------

    Future<ByteBuf> request(ByteBuf message, long timeoutMillis) {
        return start(new Request<>(message, timeoutMillis) {
            @Override
            void answer0(ByteBuf reply) {
                if (!trySuccess(reply)) {
                    lateReplies.increment();
                    reply.release();
                }
            }
        });
    }

    Future<byte[]> request(byte[] message, long timeoutMillis) {
        return start(new Request<>(copy(message), timeoutMillis) {
            @Override
            void answer0(ByteBuf reply) {
                byte[] bytes = new byte[reply.readableBytes()];
                reply.readBytes(bytes);
                reply.release();
                if (!trySuccess(bytes)) {
                    lateReplies.increment();
                }
            }
        });
    }

    private <T> Future<T> start(Request<T> request) {
        if (channel.eventLoop().inEventLoop()) {
            request.run();
        } else {
            try {
                channel.eventLoop().execute(request);
            } catch (RejectedExecutionException ended) {
                request.message.release();
                request.tryFailure(closed(ended));
            }
        }
        return request;
    }

    private static ClosedChannelException closed(@Nullable Throwable cause) {
        ClosedChannelException closed = new ClosedChannelException();
        if (cause != null) {
            closed.initCause(cause);
        }
        return closed;
    }

    /** A request: the promise of its reply. What it sends belongs to the channel from the start, so giving it up releases nothing early. */
    private abstract class Request<T> extends DefaultPromise<T> implements Runnable {
        private final ByteBuf message;
        private final long timeoutMillis;
        private long correlation;
        private long deadlineNanos;

        Request(ByteBuf message, long timeoutMillis) {
            super(channel.eventLoop());
            this.message = message;
            this.timeoutMillis = timeoutMillis;
        }

        /** Takes the reply over. */
        abstract void answer0(ByteBuf reply);

        @Override
        protected EventExecutor executor() {
            return channel.eventLoop();
        }

        @Override
        public void run() {
            if (isDone()) {
                message.release(); // cancelled before it began
                return;
            }
            if (inactive) {
                message.release();
                tryFailure(closed(firstCause));
                return;
            }
            correlation = ++lastCorrelation & CORRELATION_MASK;
            pending.put(correlation, this);
            long now = System.nanoTime();
            deadlineNanos = now + Math.min(TimeUnit.MILLISECONDS.toNanos(timeoutMillis), MAX_TIMEOUT_NANOS);
            sweepBy0(deadlineNanos, now);
            send(REQUEST, correlation, message).addListener(sent -> {
                if (!sent.isSuccess()) {
                    forget0();
                    tryFailure(sent.cause());
                }
            });
        }

        private void timeOut0() {
            forget0();
            tryFailure(new RequestException.TimedOut("request to " + channel.remoteAddress() + ": no reply within "
                    + timeoutMillis + " ms; the peer may still be working on it"));
        }

        void forget0() {
            pending.remove(correlation);
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            boolean cancelled = super.cancel(mayInterruptIfRunning);
            if (cancelled) {
                try {
                    channel.eventLoop().execute(this::forget0);
                } catch (RejectedExecutionException ended) {
                    LOG.trace("{}: the loop is over, and has forgotten all requests", channel, ended);
                }
            }
            return cancelled;
        }
    }

    /** Has {@link #sweep0} run at a time at the latest. One task for all requests: nearly all are answered long before theirs would be due. */
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

    /** Fails the requests whose time is up. */
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
    // -----------------------------------------------------------------------------------------------------------------------

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf frame = (ByteBuf) message;
        if (frame.readableBytes() < HEADER_BYTES) {
            int bytes = frame.readableBytes();
            frame.release();
            throw new IllegalStateException("a message of " + bytes + " bytes is no message of the short form: its peer"
                    + " must be an RdmaClient or RdmaServer");
        }
        long header = frame.readLong();
        int kind = (int) (header >>> KIND_SHIFT);
        long correlation = header & CORRELATION_MASK;
        switch (kind) {
            case MESSAGE -> handle(plain, frame);
            case REQUEST -> handle(new Exchange(this, correlation, true), frame);
            case REPLY, FAILURE -> answer(kind, correlation, frame);
            default -> {
                frame.release();
                throw new IllegalStateException("a message of kind " + kind
                        + " is no message of the short form: its peer must be an RdmaClient or RdmaServer");
            }
        }
    }

    private void handle(Exchange exchange, ByteBuf message) {
        try {
            handler.onMessage(exchange, message);
        } catch (Exception failure) {
            if (exchange.isRequest()) {
                LOG.debug("{}: the handler failed a request", channel, failure);
                exchange.fail(failure);
            } else {
                LOG.error("{}: the handler failed on a message; nobody waits for an answer", channel, failure);
            }
        } finally {
            message.release();
        }
    }

    private void answer(int kind, long correlation, ByteBuf frame) {
        Request<?> request = pending.get(correlation);
        if (request == null) {
            lateReplies.increment();
            frame.release();
            return;
        }
        request.forget0();
        if (kind == REPLY) {
            request.answer0(frame);
        } else {
            String text = frame.toString(StandardCharsets.UTF_8);
            frame.release();
            request.tryFailure(new RequestException.Failed(
                    "request to " + channel.remoteAddress() + ": the peer's handler failed: " + text));
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (pausesReading) {
            channel.config().setAutoRead(channel.isWritable());
        }
        context.fireChannelWritabilityChanged();
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
            request.tryFailure(cause == null ? closed(null) : cause);
        }
        context.fireChannelInactive();
    }
}
