package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.verbena.api.service.Codec;
import org.verbena.api.service.MessageStream;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.ValueStream;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;

/** An inbound message, and the methods that answer it. Any thread. */
public final class Incoming {
    private record BothWays(Headers received, Headers replied) {
        private static final BothWays NONE = new BothWays(Headers.NONE, Headers.NONE);
    }

    /** Not an object of its own, since each request would have one more. */
    private static final AtomicIntegerFieldUpdater<Incoming> STATE =
            AtomicIntegerFieldUpdater.newUpdater(Incoming.class, "state");

    /** No handler has it. */
    private static final int ARRIVED = 0;

    private static final int BEGUN = 1;

    /** It has its answer. The states from here on are ends. */
    private static final int OVER = 2;

    /** Nobody waits for its answer. */
    private static final int CANCELLED = 3;

    private final Messenger messenger;
    private final long correlation;
    private final boolean request;
    private final long arrivedNanos;
    /** How long the peer waits from then on; {@link Long#MAX_VALUE} if it did not say. */
    private final long timeNanos;

    /** What has come with it and what goes with its reply: one field, which costs those without headers nothing. */
    private volatile BothWays headers;

    /** A request goes from {@link #ARRIVED} or {@link #BEGUN} to an end. */
    private volatile int state; // ARRIVED

    /** Whether other threads may find it among the {@linkplain OpenRequests open ones}. Written by the loop. */
    private volatile boolean listed;

    /** How many bytes count for it there. */
    private int listedBytes;

    /** What to run at its end; null for nothing. Written and changed under this object's lock. */
    private volatile @Nullable List<Consumer<@Nullable Throwable>> whenOver;

    /** Whether the handler of a request has sent a message: perhaps it meant a reply. */
    private volatile boolean hasSent;

    /** The message that a handler on a virtual thread has now. Written by that thread. */
    private volatile @Nullable ByteBuf handled;

    private Incoming(
            Messenger messenger,
            long correlation,
            boolean request,
            long arrivedNanos,
            long timeNanos,
            Headers headers) {
        this.messenger = messenger;
        this.correlation = correlation;
        this.request = request;
        this.arrivedNanos = arrivedNanos;
        this.timeNanos = timeNanos;
        this.headers = headers.isEmpty() ? BothWays.NONE : new BothWays(headers, Headers.NONE);
    }

    /** A message that is not a request. */
    static Incoming ofMessage(Messenger messenger) {
        return new Incoming(messenger, 0, false, 0, Long.MAX_VALUE, Headers.NONE);
    }

    /**
     * A request with a deadline, or with none.
     *
     * @param arrivedNanos a time of the loop's clock
     * @param timeNanos how long the peer waits from then on; {@link Long#MAX_VALUE} without a deadline
     */
    static Incoming ofTimedRequest(Messenger messenger, long correlation, long arrivedNanos, long timeNanos) {
        return ofHeadedRequest(messenger, correlation, arrivedNanos, timeNanos, Headers.NONE);
    }

    /** As {@link #ofTimedRequest}, with what it has in front of its message. */
    static Incoming ofHeadedRequest(
            Messenger messenger, long correlation, long arrivedNanos, long timeNanos, Headers headers) {
        return new Incoming(messenger, correlation, true, arrivedNanos, timeNanos, headers);
    }

    /** Null unless it is a stream. Written before any thread has it. */
    private @Nullable StreamOwner stream;

    /** The object by which the program sees it; null at first. */
    private @Nullable Object seen;

    public boolean isRequest() {
        return request;
    }

    /**
     * The messages that follow it.
     *
     * @throws IllegalStateException there are none
     */
    public MessageStream stream() {
        ItemStream messages = itemStream();
        if (messages == null) {
            throw new IllegalStateException("this is no stream: its client has to begin it with stream(...)");
        }
        return messages.accept();
    }

    /**
     * The same as values, of which the request's message may be the first.
     *
     * @param message stays the caller's
     */
    public <S, R> ValueStream<S, R> stream(Codec<S> sent, Codec<R> received, ByteBuf message) {
        ItemStream messages = itemStream();
        if (messages != null && headers().hasFirst()) {
            messages.first(Unpooled.wrappedBuffer(ByteBufUtil.getBytes(message)));
        }
        stream();
        return new CodedStream<>(Objects.requireNonNull(messages), sent, received);
    }

    /** Whether messages follow it. */
    public boolean isStream() {
        return stream != null;
    }

    /** Null unless it is a stream. */
    @Nullable ItemStream itemStream() {
        StreamOwner owner = stream;
        return owner == null ? null : owner.messages;
    }

    /** It is a stream, which begins. On the loop, before any other thread has it. */
    void beginStream0() {
        StreamOwner owner = new StreamOwner();
        stream = owner;
        owner.messages.begin0(new ItemStream.Place(messenger, correlation | Frames.ANSWERING, owner));
    }

    private final class StreamOwner implements ItemStream.Owner {
        private final ItemStream messages = ItemStream.ofHandler(
                messenger.clock(),
                Incoming.this::giveUpStream,
                messenger.streams().unsent(),
                headers().metadata());

        /** Whether what goes with the first message is known. Written under the lock of the request. */
        private volatile boolean sending;

        /** What that is. */
        private volatile Headers first = Headers.NONE;

        // The following are written before it is over.
        /** Whether it ends as it should. */
        private volatile boolean answered;

        /** Why it fails, if this end knows more of it. */
        private volatile @Nullable Throwable failure;

        private @Nullable Throwable outcome() {
            Throwable cause = failure;
            return answered
                    ? null
                    : state == CANCELLED
                            ? cancellation("stream")
                            : cause == null ? new CancellationException("this end has refused the stream") : cause;
        }

        @Override
        public void end0() {
            if (finish()) {
                answered = true;
                messenger.outgoing().streamEnd(correlation, takeReplied());
                over(null);
            }
        }

        @Override
        public void sending() {
            if (!sending) {
                synchronized (Incoming.this) {
                    first = sending ? first : takeReplied();
                    sending = true;
                }
            }
        }

        @Override
        public Headers firstHeaders0() {
            return first;
        }

        @Override
        public void breakOff(Throwable cause) {
            if (!messenger.isGone()) { // else the end of the connection cancels it
                fail(cause);
            }
        }
    }

    /** What it has in front of its message. */
    public Headers headers() {
        return headers.received();
    }

    /** What has been added so far; what is added from now on goes with a later frame. */
    private synchronized Headers takeReplied() {
        BothWays now = headers;
        headers = new BothWays(now.received(), Headers.NONE);
        return now.replied();
    }

    /** Adds to what goes with the reply, if there may be one: messages share an object. */
    public synchronized void addReplyMetadata(Metadata more) {
        if (request) {
            BothWays now = headers;
            headers = new BothWays(
                    now.received(), Headers.of(now.replied().metadata().with(more)));
        }
    }

    /**
     * Sends the reply.
     *
     * @param message its ownership is taken
     * @throws IllegalStateException it is the handler's own message, and was not retained
     */
    public Future<Void> reply(ByteBuf message) {
        messenger.handlers().checkKept(this, message);
        return answer(message);
    }

    /** Replies with a copy. */
    public CompletableFuture<Void> reply(byte @Nullable [] message) {
        return reply(Messenger.buffer(message));
    }

    /** Replies with a copy of what remains. */
    public CompletableFuture<Void> reply(@Nullable ByteBuffer message) {
        ByteBuf copy;
        try {
            copy = Frames.copyOf(messenger.channel().alloc(), message);
        } catch (RuntimeException | Error noMemory) {
            return messenger.completable(cannotAnswer(noMemory));
        }
        return messenger.completable(answer(copy));
    }

    /**
     * Sends a message of its own to the peer.
     *
     * @param message its ownership is taken
     * @throws IllegalStateException it is the handler's own message, and was not retained
     */
    public Future<Void> send(ByteBuf message) {
        messenger.handlers().checkKept(this, message);
        noteSent();
        return messenger.send(message);
    }

    /** Sends a copy. */
    public CompletableFuture<Void> send(byte[] message) {
        noteSent();
        return messenger.send(message);
    }

    /** Sends a copy of what remains. */
    public CompletableFuture<Void> send(ByteBuffer message) {
        noteSent();
        return messenger.send(message);
    }

    private void noteSent() {
        if (request) {
            hasSent = true;
        }
    }

    private Future<Void> answer(@Nullable ByteBuf message) {
        if (!finish()) {
            ReferenceCountUtil.safeRelease(message);
            return unanswerable();
        }
        endStream(null);
        Future<Void> reply = messenger.outgoing().reply(correlation, message, arrivedNanos, headers.replied());
        over(null);
        return reply;
    }

    /** Why a reply is not sent. The program's faults are logged, since few programs look at these futures. */
    private Future<Void> unanswerable() {
        if (request && state == CANCELLED) {
            Promise<Void> failed = messenger.notifier().newPromise();
            return failed.setFailure(cancellation("reply"));
        }
        IllegalStateException fault = new IllegalStateException(
                request
                        ? "the request is answered already: reply once, and send further messages with send"
                        : "the message is not a request, and nobody waits for a reply: use send, or look at isRequest");
        messenger.handlers().report(this, fault);
        return messenger.notifier().newFailedFuture(fault);
    }

    /** There is no memory for the reply: the request fails. */
    private Future<Void> cannotAnswer(Throwable cause) {
        if (finish()) {
            messenger.outgoing().replyFailed(correlation, cause);
            over(cause);
        }
        return messenger.notifier().newFailedFuture(cause);
    }

    /** How long the peer still waits; {@link Long#MAX_VALUE} if it does not say, or for no reply. */
    public long remainingNanos() {
        return timeNanos == Long.MAX_VALUE
                ? Long.MAX_VALUE
                : Math.max(0, timeNanos - (messenger.clock().nanoTime() - arrivedNanos));
    }

    /** Whether the peer waits no longer. */
    boolean isExpired() {
        return timeNanos != Long.MAX_VALUE && messenger.clock().nanoTime() - arrivedNanos >= timeNanos;
    }

    /** Whether the peer has said how long it waits. */
    boolean hasDeadline() {
        return timeNanos != Long.MAX_VALUE;
    }

    /** When its time is over, if it has a deadline. */
    long deadlineNanos() {
        return arrivedNanos + timeNanos;
    }

    /** When the first part of the request arrived. */
    long arrivedNanos() {
        return arrivedNanos;
    }

    public Channel channel() {
        return messenger.channel();
    }

    /** The program cannot handle it: fails at the peer, if that still waits for a reply. */
    public void fail(Throwable cause) {
        messenger.handlers().failed(this, cause);
    }

    /** Sends a failure to the peer, if it still waits for a reply. */
    void sendFailure(Throwable cause) {
        if (!finish()) {
            return;
        }
        endStream(cause);
        if (cause instanceof RequestFailure chosen) {
            messenger.outgoing().error(correlation, chosen, arrivedNanos);
        } else {
            messenger.outgoing().failure(correlation, cause);
        }
        over(cause);
    }

    /** The handler has cancelled the stream, which the peer learns: no log says more. */
    private void giveUpStream() {
        if (finish()) {
            Throwable cause = new CancellationException("the handler has given up the stream");
            endStream(cause);
            messenger.outgoing().failure(correlation, "it has cancelled the stream");
            over(cause);
        }
    }

    /** Sends a refusal to the peer, because the server is overloaded, if the peer still waits for a reply. */
    void refuse(long retryAfterNanos) {
        if (finish()) {
            messenger.outgoing().overloaded(correlation, retryAfterNanos);
            unlist();
        }
    }

    /** Sends a refusal to the peer for a reason that stays, if it still waits for a reply. */
    public void refuse(RequestException.Refused.Reason reason, String words) {
        if (finish()) {
            int why = switch (reason) {
                case UNKNOWN -> Frames.REFUSED_UNKNOWN;
                case NOT_AUTHORIZED -> Frames.REFUSED_NOT_AUTHORIZED;
                case LIMIT -> Frames.REFUSED_LIMIT;
            };
            messenger.outgoing().refused(correlation, why, words);
            over(new RequestException.Refused(words, reason));
        }
    }

    /** Sends a refusal to the peer, because this end is leaving, unless a handler has begun. Returns whether it did. */
    boolean refuseLeaving() {
        if (!STATE.compareAndSet(this, ARRIVED, OVER)) {
            return false;
        }
        messenger.outgoing().refusedLeaving(correlation);
        unlist();
        return true;
    }

    /** The handler of a request begins, unless the request is over. */
    boolean begin() {
        return STATE.compareAndSet(this, ARRIVED, BEGUN);
    }

    /** Nobody waits for the reply. Returns whether a handler was to begin, which it will not now. */
    boolean cancel() {
        int before = end(CANCELLED);
        if (before >= OVER) {
            return false;
        }
        if (hasSent) {
            messenger.handlers().neverReplied();
        }
        over(whenOver == null ? null : new CancellationException("nobody waits for the reply any more"));
        return before == ARRIVED;
    }

    /** Whether nobody waits for the reply, although there is none. */
    public boolean isCancelled() {
        int now = state;
        return now == CANCELLED || (request && now < OVER && (isExpired() || messenger.isGone()));
    }

    /** Runs this once when nobody waits for the reply any more: on this thread if that is so already. */
    public void onCancel(Runnable action) {
        if (!request) {
            return;
        }
        Consumer<@Nullable Throwable> ifCancelled = cause -> {
            if (state == CANCELLED) {
                action.run();
            }
        };
        if (isCancelled() || (!onEnd(ifCancelled) && isCancelled())) {
            run(ended -> action.run(), null);
        }
    }

    /**
     * Runs this once when it has its answer, or nobody waits for that any more; with what it failed with, or null for a
     * reply.
     *
     * @return false if it has ended, and this does not run
     */
    public synchronized boolean onEnd(Consumer<@Nullable Throwable> action) {
        if (!request || isOver()) {
            return false;
        }
        List<Consumer<@Nullable Throwable>> before = whenOver;
        List<Consumer<@Nullable Throwable>> actions = before == null ? new ArrayList<>(1) : before;
        actions.add(action);
        whenOver = actions;
        if (isOver()) { // the thread that ended it may have looked before this action was added
            actions.removeLast();
            return false;
        }
        return true;
    }

    private void run(Consumer<@Nullable Throwable> action, @Nullable Throwable cause) {
        try {
            action.accept(cause);
        } catch (Throwable thrown) {
            messenger.handlers().report(this, thrown);
        }
    }

    /** Whether the caller is to answer it: true once for a request, and never for a message. */
    private boolean finish() {
        return request && end(OVER) < OVER;
    }

    /** Ends it, unless it has ended. Returns the state before. */
    private int end(int how) {
        int before = state;
        while (before < OVER && !STATE.compareAndSet(this, before, how)) {
            before = state;
        }
        return before;
    }

    /** It has ended, with this failure or a reply. Looks for actions without a lock, as {@link #onEnd} allows. */
    private void over(@Nullable Throwable cause) {
        unlist();
        if (whenOver == null) {
            return;
        }
        List<Consumer<@Nullable Throwable>> actions;
        synchronized (this) {
            actions = whenOver;
            whenOver = null;
        }
        if (actions != null) {
            actions.reversed().forEach(action -> run(action, cause));
        }
    }

    private void unlist() {
        if (listed) {
            messenger.handlers().over(this);
        }
        StreamOwner owner = stream;
        if (owner != null) {
            messenger.streams().over(this);
            owner.messages.ended(owner.outcome());
        }
    }

    /** The answer to the request is the end of its messages as well. */
    private void endStream(@Nullable Throwable cause) {
        StreamOwner owner = stream;
        if (owner != null) {
            owner.answered = cause == null;
            owner.failure = cause;
        }
    }

    private Throwable cancellation(String what) {
        return messenger.isGone()
                ? messenger.closed(what, new ClosedChannelException())
                : new CancellationException("the client waits no longer for the " + what);
    }

    /** Whether it has no answer, and its time is not over. One that was just answered may still be listed. */
    boolean isAwaited() {
        return !isOver() && !isExpired();
    }

    boolean isOver() {
        return state >= OVER;
    }

    long correlation() {
        return correlation;
    }

    /** From now on others may find it. On the loop. */
    void setListed(int bytes) {
        listedBytes = bytes;
        listed = true;
    }

    int listedBytes() {
        return listedBytes;
    }

    void setHandled(@Nullable ByteBuf message) {
        handled = message;
    }

    @Nullable ByteBuf handled() {
        return handled;
    }

    /**
     * The object by which the program sees it. Messages that are handled one after another on a loop share one object.
     */
    public <T> T seenAs(Class<T> type, Function<Incoming, T> maker) {
        Object known = seen;
        if (!type.isInstance(known)) {
            known = maker.apply(this);
            seen = known;
        }
        return type.cast(known);
    }
}
