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
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.Retries;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;

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
final class Call<T> {
    private static final Logger LOG = LoggerFactory.getLogger(Call.class);

    private final Links links;
    private final Operation<T> operation;
    private final CallPlan plan;
    private final Promise<T> outcome;
    private final int bytes;
    private final long timeoutNanos;
    private final long beganNanos = System.nanoTime();

    // Guarded by this object.
    /** Owned until it is over. */
    private final ByteBuf message;

    private final List<Future<T>> attempts = new ArrayList<>(1);
    private @Nullable Future<?> hedge;
    private boolean over;

    /** Whether there is something to undo on the control thread when it is over. Written there, read by any. */
    private volatile boolean held;

    // Confined to the control thread.
    private boolean waits;
    private int losses;
    private @Nullable Messenger lost;
    private int refusals;
    private @Nullable Future<?> timer;

    /**
     * Prepares it. Any thread.
     *
     * @param message its ownership is taken
     */
    Call(Links links, Operation<T> operation, ByteBuf message, Promise<T> outcome, long timeoutNanos, CallPlan plan) {
        this.links = links;
        this.operation = operation;
        this.message = message;
        this.outcome = outcome;
        this.timeoutNanos = operation.equals(Operation.SEND) ? links.longestWaitNanos() : timeoutNanos;
        this.plan = plan;
        bytes = message.readableBytes();
    }

    /**
     * Begins. Any thread, once.
     *
     * @param messenger of the first attempt; null to look for one
     */
    void begin(@Nullable Messenger messenger) {
        outcome.addListener(done -> end());
        if (messenger == null) {
            links.control(this::next0);
        } else {
            attempt(messenger);
        }
    }

    /** The outcome is there, from here or from its owner. Any thread. */
    private void end() {
        List<Future<T>> all;
        Future<?> second;
        synchronized (this) {
            over = true;
            message.release();
            all = List.copyOf(attempts);
            second = hedge;
        }
        stop(second);
        for (Future<T> attempt : all) {
            attempt.cancel(false); // which does nothing to one that is over, too
        }
        if (held) {
            links.control(this::leave0);
        }
    }

    private long leftNanos() {
        return Math.max(1, timeoutNanos - (System.nanoTime() - beganNanos));
    }

    /** Begins an attempt, or waits for a connection. */
    private void next0() {
        if (outcome.isDone()) {
            return;
        }
        Throwable refusal = links.refusal0(name());
        if (refusal != null) {
            fail(refusal);
            return;
        }
        Messenger messenger = pick0();
        if (messenger != null) {
            attempt(messenger);
            return;
        }
        if (links.failsFast()) {
            fail(links.unavailable(name(), "no connection"));
            return;
        }
        wait0();
    }

    private String name() {
        return operation.equals(Operation.SEND) ? "send" : "request";
    }

    // ---- waiting for a connection

    private void wait0() {
        if (!links.waitingLimit().tryTake(bytes)) {
            fail(links.waitingLimit().refusal(name(), links, bytes));
            return;
        }
        waits = true;
        links.wait0(this);
        hold0(this::timeOut0, leftNanos());
    }

    private void hold0(Runnable next, long delayNanos) {
        timer = Links.CONTROL.schedule(next, delayNanos, TimeUnit.NANOSECONDS);
        held = true;
        if (outcome.isDone()) { // in the meantime, when nothing was held yet
            leave0();
        }
    }

    private void timeOut0() {
        if (waits) {
            fail(links.unavailable(
                    name(), "no connection within " + TimeUnit.NANOSECONDS.toMillis(timeoutNanos) + " ms"));
        }
    }

    /** It waits no more, for whatever reason. */
    private void leave0() {
        links.leave0(this);
        stopWaiting0();
    }

    private void stopWaiting0() {
        if (waits) {
            waits = false;
            links.waitingLimit().giveBack(bytes);
        }
        stop(timer);
        timer = null;
    }

    private static void stop(@Nullable Future<?> scheduled) {
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    /** There is a connection; the links have removed it from those that wait. */
    void go0(Messenger messenger) {
        stopWaiting0();
        attempt(messenger);
    }

    /** The client is closed; the links have removed it from those that wait or rest. */
    void giveUp0() {
        stopWaiting0();
        Throwable refusal = links.refusal0(name());
        fail(refusal == null ? links.unavailable(name(), "no connection") : refusal);
    }

    // ---- attempts

    /** Any thread. */
    private void attempt(Messenger messenger) {
        ByteBuf copy;
        synchronized (this) {
            if (over) {
                return;
            }
            copy = message.retainedDuplicate();
        }
        Future<T> begun = operation.start(messenger, copy, leftNanos(), false);
        boolean late;
        synchronized (this) {
            attempts.add(begun);
            late = over;
        }
        begun.addListener((Future<T> done) -> attempted(done, messenger));
        if (late) {
            begun.cancel(false);
        } else if (plan.hedgeNanos() != CallPlan.NO_HEDGE) {
            hedgeLater(messenger);
        }
    }

    /** Any thread. */
    private void attempted(Future<T> done, Messenger messenger) {
        if (done.isSuccess()) {
            links.retries().answered();
            T value = done.getNow();
            if (outcome.trySuccess(value)) {
                links.took(System.nanoTime() - beganNanos);
            } else {
                ReferenceCountUtil.release(value);
            }
            return;
        }
        Throwable cause = done.cause();
        if (cause instanceof RequestException.Failed) {
            links.retries().answered();
        }
        if (!outcome.isDone()) {
            links.control(() -> failed0(done, cause, messenger));
        }
    }

    private void failed0(Future<T> done, Throwable cause, Messenger messenger) {
        boolean last;
        synchronized (this) {
            attempts.remove(done);
            last = attempts.isEmpty();
        }
        if (outcome.isDone() || !last) {
            return; // the other attempt may succeed
        }
        if (cause instanceof ConnectionException loss && !operation.equals(Operation.SEND)) {
            lost = messenger;
            if (!loss.mayHaveBegun()) {
                next0();
                return;
            }
            // The first loss costs nothing: it happens to all requests of a connection at once, and only once. A
            // request
            // that loses one connection after another may be the reason for it.
            if (plan.idempotent() && (losses == 0 || links.retries().tryTake())) {
                losses++;
                next0();
                return;
            }
        }
        if (cause instanceof RequestException.Overloaded busy && refusals < plan.mostRefusals()) {
            long delayNanos = Retries.delayNanos(busy.retryAfter().toNanos(), refusals);
            if (delayNanos < leftNanos() && links.retries().tryTake()) {
                refusals++;
                links.rest0(this);
                hold0(this::again0, delayNanos);
                return;
            }
        }
        fail(cause);
    }

    /** The connection of the next attempt: none that it has just been lost on, although that may still be listed. */
    @Nullable Messenger pick0() {
        Messenger picked = links.pickOpen(plan);
        return picked != null && picked == lost ? links.pickOtherThan(picked) : picked;
    }

    private void again0() {
        links.leave0(this);
        next0();
    }

    private void fail(Throwable cause) {
        outcome.tryFailure(cause);
    }

    // ---- a second attempt beside the first

    /** Attempts it a second time if there is no reply by then. Any thread. */
    private void hedgeLater(Messenger first) {
        long delayNanos = plan.hedgeNanos() == CallPlan.USUAL_HEDGE ? links.usualNanos() : plan.hedgeNanos();
        synchronized (this) {
            if (hedge != null || over || delayNanos == 0 || delayNanos >= leftNanos()) {
                return;
            }
            try {
                hedge = first.channel().eventLoop().schedule(() -> hedge(first), delayNanos, TimeUnit.NANOSECONDS);
            } catch (RejectedExecutionException ended) {
                LOG.trace("the event loop has ended, and so does the attempt", ended);
            }
        }
    }

    /** Any thread. */
    private void hedge(Messenger first) {
        synchronized (this) {
            if (over || attempts.size() != 1) {
                return;
            }
        }
        Messenger other = links.pickOtherThan(first);
        if (other != null && links.retries().tryTake()) {
            attempt(other);
        }
    }
}
