package org.verbena.transport.protocol.sending;

import io.netty.util.concurrent.FastThreadLocal;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.FreeList;
import org.verbena.transport.protocol.state.Lifecycle;
import org.verbena.transport.protocol.state.Peer;

/**
 * The user's operations, from submission to callback. An operation is in one of these lists, messages in that of all
 * messages as well until they are finished:
 *
 * <pre>{@code
 * waiting --posted--> (its work requests are out) --done--> outcomes --reported--> free
 *                          | one of them failed, one-sided
 *                          v
 *                        failed --the connection's cause is known--> outcomes
 * }</pre>
 *
 * Messages come to their outcomes in the order given. Only {@link #reportOutcome()} calls callbacks, when no list is
 * being walked.
 */
public final class Outbox {
    private static final FastThreadLocal<FreeList<Operation>> FREE = FreeList.perLoop();

    private final Lifecycle life;
    private final Peer peer;
    private final ConnectionCounters counters;
    private final Consumer<Throwable> onThrown;

    private @Nullable Operation waitingHead;
    private @Nullable Operation waitingTail;
    private @Nullable Operation messagesHead;
    private @Nullable Operation messagesTail;
    private @Nullable Operation failedHead;
    private @Nullable Operation failedTail;
    private @Nullable Operation outcomesHead;
    private @Nullable Operation outcomesTail;
    private @Nullable FreeList<Operation> free;
    private int unfinished;
    private long queuedBytes;
    /** This end's half of the stream is closed, or will be when what was sent before has gone. */
    private boolean outputEnded;

    private boolean writable;
    /** The first message whose copy may not have gone: it and those behind it have no outcome before it has. */
    private @Nullable Operation heldFrom;

    /**
     * Creates an empty one.
     *
     * @param onThrown given the exceptions of callbacks, and failures to release memory
     */
    public Outbox(Lifecycle life, Peer peer, ConnectionCounters counters, Consumer<Throwable> onThrown) {
        this.life = life;
        this.peer = peer;
        this.counters = counters;
        this.onThrown = onThrown;
    }

    /** Operations that have no outcome yet. */
    public int unfinished() {
        return unfinished;
    }

    /** Bytes of messages that have no outcome yet. */
    public long queuedBytes() {
        return queuedBytes;
    }

    public Operation newOperation(Operation.Kind kind, @Nullable OperationCallback callback, @Nullable Object context) {
        Operation operation = free().poll();
        if (operation == null) {
            operation = new Operation();
        }
        operation.kind = kind;
        operation.callback = callback;
        operation.context = context;
        unfinished++;
        return operation;
    }

    private FreeList<Operation> free() {
        FreeList<Operation> ofLoop = free;
        if (ofLoop == null) {
            ofLoop = FREE.get();
            free = ofLoop;
        }
        return ofLoop;
    }

    /**
     * Submits an operation: it waits to be posted, or fails at once if it is invalid or no more are accepted; returns
     * whether it waits.
     */
    public boolean submit(Operation operation) {
        boolean isMessage = operation.kind == Operation.Kind.MESSAGE;
        if (isMessage) {
            addMessage(operation);
        }
        Throwable refusal = refusal(operation);
        if (refusal != null) {
            operation.failure = refusal;
        }
        if (operation.failure == null) {
            enqueue(operation);
            return true;
        }
        operation.posted = true;
        if (isMessage) {
            operation.done = true;
            completeMessages();
        } else {
            finish(operation);
        }
        return false;
    }

    /** Why no more operations are accepted, or null. */
    private @Nullable Throwable refusal(Operation operation) {
        if (!life.isClosing()) {
            return outputEnded && operation.kind == Operation.Kind.MESSAGE
                    ? notDone(operation, "the output was shut down")
                    : null;
        }
        Throwable cause = life.firstCause();
        return cause != null
                ? cause
                : notDone(
                        operation,
                        life.hasPeerClosed() ? "the peer closed the connection" : "the connection is closed");
    }

    /** Either end has closed in good order, so nothing is lost. */
    private static ConnectionException notDone(Operation operation, String why) {
        return new ConnectionException.NotDone(operation.describe() + " was not done: " + why);
    }

    /** No more messages are accepted. */
    public void endOutput() {
        outputEnded = true;
    }

    /** Whether the next message would be posted at once. */
    public boolean isWritable() {
        return writable;
    }

    /**
     * Updates that; returns whether it has changed.
     *
     * @param isHeldUp whether something else cannot be posted
     */
    public boolean updateWritable(boolean isHeldUp) {
        boolean before = writable;
        writable = waitingHead == null && !isHeldUp && life.is(Lifecycle.Phase.ACTIVE);
        return writable != before;
    }

    /** Appends a message to the list of all messages. */
    private void addMessage(Operation operation) {
        queuedBytes += operation.totalBytes;
        if (messagesTail == null) {
            messagesHead = operation;
        } else {
            messagesTail.nextMessage = operation;
        }
        messagesTail = operation;
    }

    /** A message was added to an operation that waits to be posted. */
    public void grow(Operation operation, int bytes) {
        operation.totalBytes += bytes;
        operation.remainingBytes += bytes;
        queuedBytes += bytes;
    }

    private void enqueue(Operation operation) {
        if (waitingTail == null) {
            waitingHead = operation;
        } else {
            waitingTail.next = operation;
        }
        waitingTail = operation;
    }

    /** The first that waits to be posted. */
    public @Nullable Operation firstWaiting() {
        return waitingHead;
    }

    /** The last that waits to be posted. */
    public @Nullable Operation lastWaiting() {
        return waitingTail;
    }

    public boolean isNoneWaiting() {
        return waitingHead == null;
    }

    public void removeFirstWaiting() {
        Operation operation = waitingHead;
        if (operation != null) {
            waitingHead = operation.next;
            if (waitingHead == null) {
                waitingTail = null;
            }
            operation.next = null;
        }
    }

    /** The peer has closed: operations that still wait fail. */
    public void giveUpWaiting() {
        Operation operation = waitingHead;
        while (operation != null) {
            removeFirstWaiting();
            operation.failure = notDone(operation, "the peer closed the connection");
            operation.posted = true;
            maybeComplete(operation);
            operation = waitingHead;
        }
    }

    /** A work request is done: it had bytes of so many messages, or belonged to a one-sided operation. */
    public void completed(Operation first, int messages, WorkStatus status) {
        Operation operation = first;
        for (int i = 0; i < messages && operation != null; i++) {
            Operation next = operation.nextMessage; // it may be over, and used again, after this
            operation.outstanding--;
            if (status != WorkStatus.SUCCESS) {
                operation.failed = true;
                if (status != WorkStatus.FLUSHED) {
                    life.workFailed(peer, operation.describe(), status);
                }
            }
            maybeComplete(operation);
            operation = next;
        }
    }

    /** Gives an operation its outcome, if nothing of it is to be posted or under way any more. */
    public void maybeComplete(Operation operation) {
        if (operation.outstanding > 0 || !operation.posted) {
            return;
        }
        boolean isMessage = operation.kind == Operation.Kind.MESSAGE;
        if (operation.failed && operation.failure == null) {
            // Its cause is known when the connection has ended. Messages are found in their own list.
            if (!isMessage) {
                addFailed(operation);
            }
        } else if (!isMessage) {
            finish(operation);
        } else if (operation.advertisedOut == 0) {
            operation.done = true;
            completeMessages();
        }
    }

    private void addFailed(Operation operation) {
        if (failedTail == null) {
            failedHead = operation;
        } else {
            failedTail.next = operation;
        }
        failedTail = operation;
    }

    /** The endpoint has copied a frame with bytes of this message first, which may not have gone. */
    public void hold(Operation first) {
        if (heldFrom == null) {
            heldFrom = first;
        }
    }

    /** Whether what was copied had not gone when that was last looked at. */
    public boolean isHeld() {
        return heldFrom != null;
    }

    /** What was copied has gone. Returns whether messages have their outcomes for that reason. */
    public boolean endHold() {
        boolean completes = heldFrom != null && heldFrom == messagesHead && heldFrom.done;
        heldFrom = null;
        if (completes) {
            completeMessages();
        }
        return completes;
    }

    /** Messages come to their outcomes in the order in which they were given. */
    private void completeMessages() {
        while (messagesHead != null && messagesHead.done && messagesHead != heldFrom) {
            Operation operation = messagesHead;
            messagesHead = operation.nextMessage;
            if (messagesHead == null) {
                messagesTail = null;
            }
            operation.nextMessage = null;
            queuedBytes -= operation.totalBytes;
            counters.queued(queuedBytes);
            if (operation.failure == null && !operation.end) {
                counters.messagesSent(Math.max(1, operation.claimed), operation.totalBytes);
            }
            finish(operation);
        }
    }

    /**
     * An operation has its outcome and is in no list any more: its memory is released now, its callback is called by
     * {@link #reportOutcome()}.
     */
    private void finish(Operation operation) {
        try {
            operation.releaseMemory();
        } catch (RuntimeException e) {
            // The device did not release memory: the outcome is reported nevertheless, and the connection ends with
            // this.
            onThrown.accept(e);
        }
        if (operation.failure == null && operation.kind != Operation.Kind.MESSAGE) {
            counters.oneSidedDone();
        }
        unfinished--;
        operation.next = null;
        if (outcomesTail == null) {
            outcomesHead = operation;
        } else {
            outcomesTail.next = operation;
        }
        outcomesTail = operation;
    }

    /**
     * The connection has ended. Everything that is pending fails: first all lists are emptied, then what was in them is
     * finished.
     *
     * @param ending why it ended; null if in good order
     */
    public void failAll(@Nullable Throwable ending) {
        String why = "the connection to " + peer + " was closed";
        Function<Operation, Throwable> cause = operation -> ending != null
                ? ending
                : operation.posted
                        ? new ConnectionException(operation.describe() + " may not have been done: " + why)
                        : notDone(operation, why);
        Operation posted = failedHead;
        Operation unposted = waitingHead;
        failedHead = null;
        failedTail = null;
        waitingHead = null;
        waitingTail = null;
        boolean lost = false;
        for (Operation operation = messagesHead; operation != null; operation = operation.nextMessage) {
            // What follows a lost message was not delivered either, wherever it is now.
            lost |= !operation.done || operation == heldFrom;
            if (!operation.done || (lost && operation.failure == null)) {
                operation.done = true;
                operation.failure = cause.apply(operation);
            }
        }
        failOneSided(posted, cause);
        failOneSided(unposted, cause);
        heldFrom = null;
        completeMessages();
    }

    /**
     * Fails the one-sided operations of a list, which has been detached; messages in it are also in the list of all
     * messages.
     */
    private void failOneSided(@Nullable Operation first, Function<Operation, Throwable> cause) {
        Operation operation = first;
        while (operation != null) {
            Operation next = operation.next;
            operation.next = null;
            if (operation.kind != Operation.Kind.MESSAGE) {
                operation.failure = cause.apply(operation);
                finish(operation);
            }
            operation = next;
        }
    }

    /** Calls the callback that is due next; false if there is none. */
    public boolean reportOutcome() {
        Operation operation = outcomesHead;
        if (operation == null) {
            return false;
        }
        outcomesHead = operation.next;
        if (outcomesHead == null) {
            outcomesTail = null;
        }
        OperationCallback callback = operation.callback;
        Object context = operation.context;
        Throwable failure = operation.failure;
        operation.reset();
        free().add(operation);
        if (callback != null) {
            try {
                callback.onComplete(context, failure);
            } catch (Throwable e) {
                onThrown.accept(e);
            }
        }
        return true;
    }
}
