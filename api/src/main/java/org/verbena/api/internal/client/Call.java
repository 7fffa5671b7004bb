package org.verbena.api.internal.client;

import io.netty.buffer.ByteBuf;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.request.ClientTransport;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.Retries;
import org.verbena.api.internal.request.StreamOperation;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.SendLimitException;

/**
 * An operation that is not bound to one connection: it waits for one if there is none, and may be attempted on several.
 * Its time runs meanwhile.
 *
 * <pre>{@code
 *               +--------- there is one ----------+
 *               |                                 v
 * begin --> is there a connection? --no--> WAITING    attempt --reply, or a failure that is final--> over
 *               ^                                        |
 *               +---- not begun, or it may be repeated --+      (a hedge is a second attempt beside the first)
 * }</pre>
 *
 * <p>The first attempt may begin on the caller's thread; all further steps run on the control thread, except where
 * said.
 *
 * @param <T> the result
 */
@SuppressWarnings("ReferenceEquality") // a transport is this one or another
final class Call<T> {
    private static final Logger LOG = LoggerFactory.getLogger(Call.class);

    private final Links links;
    private final Operation<T> operation;
    private final CallPlan plan;
    private final Promise<T> outcome;
    private final int bytes;
    private final long timeoutNanos;
    private final boolean whole;
    private final long beganNanos;

    // Guarded by this object.
    /** Owned until it is over. */
    private final ByteBuf message;

    /** Those that are under way, the oldest first. */
    private final List<Attempt<T>> attempts = new ArrayList<>(1);

    /** How many are about to be among them. */
    private int beginning;

    private java.util.concurrent.@Nullable Future<?> hedge;
    private boolean over;

    /** Whether there is something to undo on the control thread when it is over. Written there, read by any. */
    private volatile boolean held;

    /** Whether its time includes that without a connection. Written by the control thread, before an attempt. */
    private volatile boolean hasWaited;

    /** Whether it counts among those that wait. Until it has entered its caller's, then the control thread's. */
    private boolean counts;

    // Confined to the control thread.
    /** Whether it found no room on its connection the last time. */
    private boolean crowded;

    private int losses;

    /** The connection that the last attempt was lost on. */
    private @Nullable ClientTransport lost;

    /** The connection to a server that was overloaded. */
    private @Nullable ClientTransport busy;

    private int refusals;

    /** Whether an attempt that has failed may have been begun by its server. */
    private boolean mayHaveBegun;

    private java.util.concurrent.@Nullable Future<?> timer;

    private record Attempt<T>(Future<T> future, ClientTransport transport) {}

    /**
     * Prepares it. Any thread.
     *
     * @param message its ownership is taken
     * @param whole whether the timeout is what the program gives it: else it is only what a handler has left
     */
    Call(
            Links links,
            Operation<T> operation,
            ByteBuf message,
            Promise<T> outcome,
            long timeoutNanos,
            boolean whole,
            CallPlan plan) {
        this.links = links;
        beganNanos = links.control().nanoTime();
        this.operation = operation;
        this.message = message;
        this.outcome = outcome;
        this.timeoutNanos = operation.equals(Operation.SEND) ? links.longestWaitNanos() : timeoutNanos;
        this.whole = whole;
        this.plan = plan;
        bytes = message.readableBytes();
    }

    /**
     * Begins. Any thread, once.
     *
     * @param transport of the first attempt; null to look for one
     */
    void begin(@Nullable ClientTransport transport) {
        outcome.addListener(done -> end());
        if (transport == null) {
            links.waiting().enter(this);
        } else {
            attempt(transport);
        }
    }

    /** The outcome is there, from here or from its owner. Any thread. */
    private void end() {
        List<Attempt<T>> all;
        java.util.concurrent.Future<?> second;
        synchronized (this) {
            over = true;
            message.release();
            all = List.copyOf(attempts);
            second = hedge;
        }
        links.waiting().makeRoom();
        stop(second);
        for (Attempt<T> attempt : all) { // which does nothing to one that is over, too
            if (outcome.isSuccess()) {
                attempt.transport().abandon(attempt.future());
            } else {
                attempt.future().cancel(false);
            }
        }
        if (held) {
            links.control().run(this::leave0);
        }
    }

    private long leftNanos() {
        return Math.max(1, timeoutNanos - (links.control().nanoTime() - beganNanos));
    }

    /** A connection that all threads see; null if there is none. Any thread. */
    @Nullable ClientTransport findNow() {
        return links.pickOpen(plan);
    }

    /** Begins an attempt, or waits for a connection. */
    void next0() {
        ClientTransport transport = outcome.isDone() ? null : pick0();
        if (transport == null && !outcome.isDone() && mayWait(links.failsFast())) {
            boolean isFirst = links.waiting().wait0(this);
            hold0(this::timeOut0, leftNanos());
            links.wake(isFirst);
            return;
        }
        stopCounting();
        if (transport != null) {
            attempt(transport);
        }
    }

    private String name() {
        return operation.equals(Operation.SEND) ? "send" : "request";
    }

    // ---- waiting for a connection

    /** Counts it among those that wait for a connection; if it may not, it fails. Its caller's thread. */
    boolean mayEnter() {
        return mayWait(links.failsFast());
    }

    private boolean mayWait(boolean failsFast) {
        Throwable refusal = links.refusal(name());
        if (refusal == null && failsFast) {
            refusal = links.unavailable(name(), "no connection");
        } else if (refusal == null && !tryCount()) {
            refusal = links.waitingLimit().refusal(name(), links, bytes);
        }
        if (refusal != null) {
            fail(refusal);
        }
        return refusal == null;
    }

    private boolean tryCount() {
        if (!counts) {
            counts = links.waitingLimit().tryTake(bytes);
            links.figures().changed();
        }
        return counts;
    }

    private void stopCounting() {
        if (counts) {
            counts = false;
            links.waitingLimit().giveBack(bytes);
            links.figures().changed();
        }
    }

    /** There is a connection by now. As {@link #mayEnter}. */
    void enterNot(ClientTransport transport) {
        stopCounting();
        attempt(transport);
    }

    /** Nothing can look after it while it waits. */
    void refuse(Throwable cause) {
        stopCounting();
        fail(cause);
    }

    private void hold0(Runnable next, long delayNanos) {
        timer = links.control().schedule(next, delayNanos);
        held = true;
        if (outcome.isDone()) { // in the meantime, when nothing was held yet
            leave0();
        }
    }

    private void timeOut0() {
        fail(links.unavailable(name(), "no connection within " + TimeUnit.NANOSECONDS.toMillis(timeoutNanos) + " ms"));
    }

    /** It waits no more, for whatever reason. */
    private void leave0() {
        links.waiting().leave0(this);
        stopWaiting0();
    }

    private void stopWaiting0() {
        stopCounting();
        stop(timer);
        timer = null;
    }

    private static void stop(java.util.concurrent.@Nullable Future<?> scheduled) {
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    /** There is a connection; the links have removed it from those that wait. */
    void go0(ClientTransport transport) {
        stopWaiting0();
        hasWaited = true;
        attempt(transport);
    }

    /** There will be no connection, or not in time; the links have removed it from those that wait or rest. */
    void giveUp0() {
        stopWaiting0();
        Throwable refusal = links.refusal(name());
        fail(refusal == null ? links.unavailable(name(), "no connection") : refusal);
    }

    // ---- attempts

    /** Any thread. */
    void attempt(ClientTransport transport) {
        ByteBuf copy;
        synchronized (this) {
            if (over) {
                return;
            }
            copy = message.retainedDuplicate();
            beginning++;
        }
        // Only a request can tell that its connection has not begun it.
        long leftNanos = leftNanos();
        boolean most = whole && leftNanos > timeoutNanos / 2;
        Future<T> begun;
        try {
            begun = transport.start(operation, copy, leftNanos, most, operation.equals(Operation.SEND));
        } catch (Throwable refused) { // by the loop, for want of memory
            begun = links.notifier(transport).newFailedFuture(refused);
        }
        boolean late;
        synchronized (this) {
            beginning--;
            attempts.add(new Attempt<>(begun, transport));
            late = over;
        }
        begun.addListener((Future<T> done) -> attempted(done, transport));
        if (late) {
            begun.cancel(false);
        } else if (plan.hedges()) {
            hedgeLater(transport);
        }
    }

    /** Any thread. */
    private void attempted(Future<T> done, ClientTransport transport) {
        if (done.isSuccess()) {
            boolean isReply = !operation.equals(Operation.SEND);
            if (isReply) {
                links.retries().answered();
            }
            T value = done.getNow();
            if (outcome.trySuccess(value)) {
                if (isReply && !hasWaited && !(operation instanceof StreamOperation)) {
                    links.took(links.control().nanoTime() - beganNanos);
                }
                countSlower(done);
            } else {
                ReferenceCountUtil.release(value);
            }
            return;
        }
        Throwable cause = done.cause();
        if (cause instanceof RequestException.Failed
                || cause instanceof RequestException.Refused
                || cause instanceof RequestFailure) {
            links.retries().answered();
        }
        if (!outcome.isDone()) {
            links.control().run(() -> failed0(done, cause, transport));
        }
    }

    /** The servers that had more time than this attempt's, and have not answered: they may not answer at all. */
    private void countSlower(Future<T> answered) {
        List<ClientTransport> slower = new ArrayList<>(0);
        synchronized (this) {
            for (Attempt<T> attempt : attempts) {
                if (attempt.future().equals(answered)) {
                    break;
                }
                slower.add(attempt.transport());
            }
        }
        slower.forEach(transport -> transport.countUnanswered());
    }

    private void failed0(Future<T> done, Throwable cause, ClientTransport transport) {
        mayHaveBegun |= saysBegun(cause);
        boolean last;
        synchronized (this) {
            attempts.removeIf(attempt -> attempt.future().equals(done));
            last = attempts.isEmpty() && beginning == 0;
        }
        if (outcome.isDone() || !last) {
            return; // the other attempt may succeed
        }
        if (cause instanceof ConnectionException loss && !operation.equals(Operation.SEND)) {
            lost = transport;
            if (!loss.mayHaveBegun()) {
                next0();
                return;
            }
            // The first loss costs nothing: it happens to all requests of a connection at once, and only once. A
            // request that loses one connection after another may be the reason for it.
            if (plan.idempotent() && (losses == 0 || links.retries().tryTake())) {
                losses++;
                links.figures().count(links.figures().retries);
                next0();
                return;
            }
        }
        if (cause instanceof RequestException.Overloaded overloaded && refusals < plan.mostRefusals()) {
            long delayNanos = Retries.delayNanos(
                    overloaded.retryAfter().toNanos(),
                    refusals,
                    links.control().clock().random());
            if (delayNanos < leftNanos() && links.retries().tryTake()) {
                refusals++;
                links.figures().count(links.figures().retries);
                busy = transport;
                rest0(delayNanos);
                return;
            }
        }
        if (cause instanceof SendLimitException && hasWaited && tryCount()) {
            links.waiting().waitForRoom0(this, crowded);
            crowded = true;
            hold0(() -> fail(cause), leftNanos());
            return;
        }
        fail(cause);
    }

    /**
     * The connection of the next attempt: none that it has just been lost on, although that may still be listed, and
     * none to a server that was overloaded, if there is another and no key decides.
     */
    @Nullable ClientTransport pick0() {
        ClientTransport picked = links.pickOpen0(plan);
        if (picked != null && picked == lost) {
            return links.pickOtherThan0(picked, plan);
        }
        if (picked != null && picked == busy && !plan.keyed()) {
            ClientTransport other = links.pickOtherThan0(picked, plan);
            return other == null ? picked : other;
        }
        return picked;
    }

    private void rest0(long delayNanos) {
        links.waiting().rest0(this);
        hold0(this::again0, delayNanos);
    }

    void again0() {
        leave0();
        next0();
    }

    /** Whether a server may have begun with the request that has failed so. */
    private static boolean saysBegun(Throwable cause) {
        if (cause instanceof ConnectionException loss) {
            return loss.mayHaveBegun();
        }
        return cause instanceof RequestException request
                && !request.isRetriable()
                && !(request instanceof RequestException.Refused);
    }

    /** What the last attempt, or the lack of one, says of itself may not be true of those before it. */
    private void fail(Throwable cause) {
        outcome.tryFailure(
                mayHaveBegun && !saysBegun(cause)
                        ? new ConnectionException.Lost(
                                cause.getMessage() + "; an earlier attempt may have been begun", cause, true)
                        : cause);
    }

    // ---- a second attempt beside the first

    /** Attempts it a second time if there is no reply by then. Any thread. */
    private void hedgeLater(ClientTransport first) {
        long delayNanos = plan.hedgeNanos() == CallPlan.USUAL_HEDGE ? links.usualNanos() : plan.hedgeNanos();
        synchronized (this) {
            if (hedge != null || over || delayNanos == 0 || delayNanos >= leftNanos()) {
                return;
            }
            try {
                hedge = first.schedule(() -> hedge(first), delayNanos);
            } catch (RejectedExecutionException ended) {
                LOG.trace("the event loop has ended, and so does the attempt", ended);
            }
        }
    }

    /** Any thread. */
    private void hedge(ClientTransport first) {
        ClientTransport slow;
        synchronized (this) {
            if (over || attempts.size() + beginning != 1) {
                return;
            }
            slow = attempts.isEmpty() ? first : attempts.getFirst().transport();
        }
        ClientTransport other = links.pickOtherThan(slow, plan);
        if (other != null && links.retries().tryTake()) {
            links.figures().count(links.figures().hedges);
            attempt(other);
        }
    }
}
