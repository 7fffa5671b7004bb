package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.HandlerTime;
import org.verbena.transport.RequestFailure;

/**
 * Gives a connection's messages to the program's handler, on the loop or on virtual threads, unless nobody waits for
 * the reply or the server is overloaded.
 */
final class Handlers {
    private final Messenger messenger;
    private final Channel channel;
    private final Serving.Handler handler;
    private final HandlerLog log;
    private final RequestCounters counters;

    /** Determines which requests have waited too long; null to refuse none for that. */
    private final @Nullable QueueAge queueAge;

    /** Runs the handler on virtual threads, if that was requested; else null. */
    private final @Nullable VirtualHandlers virtual;

    private final OpenRequests open;
    private final Expiry expiry;

    /** Waits until no handler runs and all is answered; null at first. Written by the loop. */
    private volatile @Nullable ConnectionDrain drain;

    // Confined to the event loop.
    private final Incoming plain;
    /** The message that a handler on the loop has now. */
    private @Nullable ByteBuf handled;

    Handlers(Messenger messenger, Serving serving, HandlerLog log) {
        this.messenger = messenger;
        channel = messenger.channel();
        handler = serving.handler();
        this.log = log;
        counters = serving.counters();
        queueAge = serving.queueAge();
        virtual = serving.virtualThreads() ? new VirtualHandlers(messenger, serving) : null;
        plain = Incoming.ofMessage(messenger);
        open = new OpenRequests(serving.openBounds());
        expiry = new Expiry(channel, open, this::cancel0);
    }

    /** Whether another stream may begin, with a message of so many bytes. On the loop. */
    boolean takesStream0(int bytes) {
        return virtual == null || virtual.takesStream0(bytes);
    }

    /** Whether so many messages are unfinished that no more should be read. On the loop. */
    boolean isFull0() {
        return virtual != null && virtual.isFull0();
    }

    /** Handles a plain message, of which it takes ownership. On the loop. */
    void message0(ByteBuf message) {
        receive0(virtual == null ? plain : Incoming.ofMessage(messenger), message);
    }

    /**
     * Whether a request may arrive here. If not, releases its frame, and refuses it for want of room, or throws: an
     * earlier one with its number could not be found any more.
     */
    boolean takes0(int kind, long correlation, ByteBuf frame) {
        boolean isKnown = open.has0(correlation);
        if (!isKnown && open.hasRoom0(frame.readableBytes())) {
            return true;
        }
        frame.release();
        if (isKnown) {
            throw Frames.breach(kind, correlation, "has the number of one that is not over");
        }
        messenger
                .outgoing()
                .refused(
                        correlation,
                        Frames.REFUSED_LIMIT,
                        "more requests of this connection have no answer than this end takes (maxOpenRequests)");
        return false;
    }

    /** Handles a request, and takes ownership of its message. On the loop. */
    void request0(Incoming incoming, ByteBuf message, int bytes) {
        if (virtual != null) {
            if (open.add0(incoming, bytes)) { // before another thread can answer it
                expiry.expect0(incoming);
            }
            receive0(incoming, message);
            return;
        }
        receive0(incoming, message);
        if (!incoming.isOver()) {
            if (open.add0(incoming, bytes)) {
                expiry.expect0(incoming);
            } else {
                incoming.cancel();
            }
            if (incoming.isOver()) { // another thread may have answered it before it was among the open ones
                ended();
            }
        }
    }

    private void receive0(Incoming incoming, ByteBuf message) {
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
        if (incoming.isRequest() && !begins(incoming)) {
            message.release();
            return;
        }
        Throwable failure = null;
        try {
            call(incoming, message);
        } catch (Throwable thrown) {
            failure = thrown;
        }
        if (message.refCnt() > 0) {
            message.release();
        } else if (failure == null) {
            failure = gaveAway();
        }
        if (failure == null || isTheCancellation(incoming, failure)) {
            return;
        }
        failed(incoming, failure);
    }

    /** Whether a handler fails only because nobody waits for its answer. */
    private static boolean isTheCancellation(Incoming incoming, Throwable failure) {
        ItemStream stream = incoming.itemStream();
        return (failure instanceof InterruptedException && incoming.isCancelled())
                || (stream != null && stream.hasFailedBy(failure));
    }

    /** Calls the handler, with the request's deadline for the requests that it sends itself. */
    private void call(Incoming incoming, ByteBuf message) throws Exception {
        if (virtual == null) {
            long before = HandlerTime.begin(incoming.hasDeadline(), incoming.deadlineNanos());
            try {
                handler.onMessage(incoming, message);
            } finally {
                HandlerTime.end(before);
            }
        } else if (incoming.hasDeadline()) {
            HandlerTime.run(messenger.clock(), incoming.deadlineNanos(), () -> {
                handler.onMessage(incoming, message);
                return incoming;
            });
        } else {
            handler.onMessage(incoming, message);
        }
    }

    /** Whether a request's handler begins; if not, it has been counted and, if anyone waits for it, refused. */
    private boolean begins(Incoming request) {
        if (request.isOver()) { // cancelled before its turn, and counted
            return false;
        }
        if (request.isCancelled()) {
            if (request.cancel()) {
                countDropped(request);
            }
            return false;
        }
        if (queueAge != null) {
            long now = messenger.clock().nanoTime();
            long waitedNanos = now - request.arrivedNanos();
            if (queueAge.refuses(waitedNanos, now)) {
                refuse(request, waitedNanos);
                return false;
            }
        }
        return request.begin();
    }

    /** Refuses a request, since the server is overloaded. On the loop, or on a virtual thread. */
    void refuse(Incoming request, long retryAfterNanos) {
        counters.countOverloaded();
        request.refuse(retryAfterNanos);
    }

    /** The client waits no longer for a request; it may have its answer by now. On the loop. */
    void cancel0(long correlation) {
        Incoming request = open.find(correlation);
        if (request != null) {
            cancel0(request);
        }
    }

    private void cancel0(Incoming request) {
        if (request.cancel()) {
            countDropped(request);
            drop0(request);
        }
    }

    /** A handler was to begin, and will not. */
    private void drop0(Incoming request) {
        if (virtual != null) {
            virtual.drop(request);
        }
    }

    private void countDropped(Incoming request) {
        if (request.isExpired()) {
            counters.countExpired();
        } else {
            counters.countAbandoned();
        }
    }

    /** The handler of a request has used {@code send}, and the request ends without an answer. Any thread. */
    void neverReplied() {
        log.neverReplied();
    }

    /** The program has made a mistake with a message. Any thread. */
    void report(Incoming incoming, Throwable failure) {
        log.failed(incoming, failure);
    }

    /** The program could not handle it. A failure that it means as its answer is no fault. Any thread. */
    void failed(Incoming incoming, Throwable failure) {
        if (!incoming.isRequest() || !(failure instanceof RequestFailure)) {
            log.failed(incoming, failure);
        }
        incoming.sendFailure(failure);
    }

    // ---- the end

    /** A request that others know of has its answer, or gets none. Any thread. */
    void over(Incoming request) {
        open.remove(request);
        ended();
    }

    /** Something that a drain may wait for has ended. Any thread. */
    void ended() {
        ConnectionDrain waiting = drain;
        if (waiting != null && isIdle()) {
            waiting.check();
        }
    }

    /** Whether no handler runs, and every request has its answer. Any thread; exact on the loop. */
    boolean isIdle() {
        return open.isEmpty() && (virtual == null || virtual.isIdle());
    }

    /** Null unless the server is leaving, or the connection has ended before its handlers. */
    @Nullable ConnectionDrain drain() {
        return drain;
    }

    void drain0(ConnectionDrain waiting) {
        drain = waiting;
    }

    /** Tells the client which of its requests have not begun: it may go on elsewhere with these. On the loop. */
    void refuseUnbegun0() {
        for (Incoming request : open.all()) {
            if (request.refuseLeaving()) {
                drop0(request);
            }
        }
    }

    /** The connection has ended, and nobody waits for its requests. On the loop. */
    void end0() {
        expiry.end0();
        List<Incoming> unanswered = open.end();
        ConnectionDrain waiting = drain;
        if (waiting != null && unanswered.stream().anyMatch(Incoming::isAwaited)) {
            waiting.unanswered0();
        }
        unanswered.forEach(this::cancel0);
        ended();
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
                + " handler returns; use reply(message.retain()) to send it back, and retain() to keep it");
    }
}
