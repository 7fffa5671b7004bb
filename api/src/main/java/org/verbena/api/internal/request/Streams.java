package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A connection's streams: the frames of all, and those that the peer has begun. Event loop only, except where said. */
final class Streams {
    /**
     * How many the peer may have begun, and how many may be in handlers on virtual threads. Each has a window of 64
     * KiB.
     */
    static final int MAX = 1024;

    /** What the streams of both ends may hold for programs that do not read: messages may be longer than windows. */
    static final long MAX_BYTES = 256L << 20;

    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    private final Messenger messenger;
    private final CorrelationMap<Incoming> begun = new CorrelationMap<>();

    /** Any thread. */
    private final AtomicLong heldBytes = new AtomicLong();

    private final UnsentItems unsent;

    /**
     * Creates them.
     *
     * @param bounds of what they wait to send
     */
    Streams(Messenger messenger, SendLimit.Bounds bounds) {
        this.messenger = messenger;
        unsent = new UnsentItems(bounds);
    }

    /** What all streams wait to send. Any thread. */
    UnsentItems unsent() {
        return unsent;
    }

    /** Counts bytes that are kept for a program. Returns false if there is no room for them. Any thread. */
    boolean tryHold(long bytes) {
        if (heldBytes.addAndGet(bytes) <= MAX_BYTES) {
            return true;
        }
        release(bytes);
        return false;
    }

    /** Releases bytes that the program has got, or that nobody wants. Any thread. */
    void release(long bytes) {
        heldBytes.addAndGet(-bytes);
    }

    /** Whether the peer may begin another stream. */
    boolean hasRoom0() {
        return begun.size() < MAX;
    }

    /** Adds a stream that the peer begins. */
    void begin0(Incoming request) {
        begun.put(request.correlation(), request);
        request.beginStream0();
    }

    /** Removes a stream that is over. Any thread. */
    void over(Incoming request) {
        EventLoop loop = messenger.channel().eventLoop();
        if (loop.inEventLoop()) {
            over0(request);
            return;
        }
        try {
            loop.execute(() -> over0(request));
        } catch (RejectedExecutionException ended) {
            LOG.trace("{}: the event loop has ended, and its streams with it", messenger.channel(), ended);
        }
    }

    private void over0(Incoming request) {
        if (request.equals(begun.get(request.correlation()))) {
            begun.remove(request.correlation());
        }
    }

    /** The connection has ended. */
    void end0() {
        begun.all().forEach(Incoming::cancel);
    }

    /** Handles a frame, which it owns. A frame of a stream that is over has crossed the end of the stream. */
    void receive0(int kind, long number, ByteBuf frame, long arrivedNanos) {
        int bytes = frame.readableBytes();
        boolean isAnswer = (number & Frames.ANSWERING) != 0;
        long correlation = number & ~Frames.ANSWERING;
        boolean mayHaveHeaders = kind == Frames.ITEMS_HEADERS || (kind == Frames.END && bytes > 0);
        if ((mayHaveHeaders && !isAnswer) || (kind == Frames.ITEM_CREDIT && bytes != Frames.CREDIT_BYTES)) {
            frame.release();
            throw Frames.notTheShortForm("of kind " + kind + " and " + (Frames.HEADER_BYTES + bytes) + " bytes");
        }
        Headers headers = mayHaveHeaders ? headers(kind, frame) : Headers.NONE;
        if (isAnswer && kind == Frames.END) {
            messenger.requests().streamEnded0(correlation, headers, frame, arrivedNanos);
            return;
        }
        ItemStream stream = isAnswer ? messenger.requests().stream0(correlation) : begun0(correlation);
        if (stream != null && kind == Frames.ITEM) {
            stream.item0(correlation, frame);
            return;
        }
        long messages = kind == Frames.ITEM_CREDIT ? frame.readUnsignedInt() : 0;
        long credit = kind == Frames.ITEM_CREDIT ? frame.readUnsignedInt() : 0;
        frame.release();
        if (stream == null) {
            return;
        }
        if (kind == Frames.ITEMS_HEADERS) {
            stream.headers0(correlation, headers);
        } else if (kind == Frames.END) {
            stream.peerEnded0(correlation);
        } else {
            stream.credit0(correlation, messages, credit);
        }
    }

    /** Reads the headers of a frame that has nothing else; otherwise releases it and throws. */
    private static Headers headers(int kind, ByteBuf frame) {
        Headers headers = Frames.readHeaders(kind, frame);
        if (headers == null || frame.isReadable()) {
            frame.release();
            throw Frames.notTheShortForm("of kind " + kind + " with too many headers, or more than headers");
        }
        return headers;
    }

    private @Nullable ItemStream begun0(long correlation) {
        Incoming request = begun.get(correlation);
        return request == null ? null : request.itemStream();
    }
}
