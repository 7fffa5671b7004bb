package org.verbena.transport.protocol;

import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What the user asked for, from the call to the callback. An operation is in one of these lists, messages in that of all messages as well until they are finished:
 *
 * <pre>{@code
 * waiting --posted--> (its work requests are out) --done--> outcomes --told--> free
 *                          | one of them failed, one-sided
 *                          v
 *                        failed --the connection's cause is known--> outcomes
 * }</pre>
 *
 * Messages come to their outcomes in the order given. Callbacks are called by {@link #tellOutcome()} alone, when nothing is being walked.
 */
final class Outbox {
    /** Recycled operations that are kept. */
    private static final int MAX_RECYCLED = 1024;

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
    private @Nullable Operation free;
    private int freeCount;
    private int unfinished;
    private long queuedBytes;

    /**
     * Makes an empty one.
     *
     * @param onThrown given what callbacks throw, and what keeps memory from being let go
     */
    Outbox(ConnectionCounters counters, Consumer<Throwable> onThrown) {
        this.counters = counters;
        this.onThrown = onThrown;
    }

    /** Operations that have no outcome yet. */
    int unfinished() {
        return unfinished;
    }

    /** Bytes of messages that have no outcome yet. */
    long queuedBytes() {
        return queuedBytes;
    }

    Operation newOperation(Operation.Kind kind, OperationCallback callback, @Nullable Object context) {
        Operation operation = free;
        if (operation == null) {
            operation = new Operation();
        } else {
            free = operation.next;
            freeCount--;
            operation.next = null;
        }
        operation.kind = kind;
        operation.callback = callback;
        operation.context = context;
        unfinished++;
        return operation;
    }

    /** A message was given, after all those before. */
    void addMessage(Operation operation) {
        queuedBytes += operation.totalBytes;
        if (messagesTail == null) {
            messagesHead = operation;
        } else {
            messagesTail.nextMessage = operation;
        }
        messagesTail = operation;
    }

    /** It waits to be posted. */
    void enqueue(Operation operation) {
        if (waitingTail == null) {
            waitingHead = operation;
        } else {
            waitingTail.next = operation;
        }
        waitingTail = operation;
    }

    /** The first that waits to be posted. */
    @Nullable Operation firstWaiting() {
        return waitingHead;
    }

    boolean isNoneWaiting() {
        return waitingHead == null;
    }

    void removeFirstWaiting() {
        Operation operation = waitingHead;
        if (operation != null) {
            waitingHead = operation.next;
            if (waitingHead == null) {
                waitingTail = null;
            }
            operation.next = null;
        }
    }

    /** A one-sided operation has failed; its cause is known when the connection has ended. */
    void addFailed(Operation operation) {
        if (failedTail == null) {
            failedHead = operation;
        } else {
            failedTail.next = operation;
        }
        failedTail = operation;
    }

    /** Messages come to their outcomes in the order in which they were given. */
    void completeMessages() {
        while (messagesHead != null && messagesHead.done) {
            Operation operation = messagesHead;
            messagesHead = operation.nextMessage;
            if (messagesHead == null) {
                messagesTail = null;
            }
            operation.nextMessage = null;
            queuedBytes -= operation.totalBytes;
            counters.queued(queuedBytes);
            if (operation.failure == null && !operation.end) {
                counters.messageSent(operation.totalBytes);
            }
            finish(operation);
        }
    }

    /** An operation has its outcome and is in no list any more: its memory is let go now, its callback is called by {@link #tellOutcome()}. */
    void finish(Operation operation) {
        try {
            operation.releaseMemory();
        } catch (RuntimeException e) {
            // The device does not let go of memory: the outcome is told all the same, and the connection ends with
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

    /** Everything that is pending fails: first all lists are emptied, then what was in them is finished. */
    void failAll(Function<Operation, Throwable> cause) {
        Operation posted = failedHead;
        Operation unposted = waitingHead;
        failedHead = null;
        failedTail = null;
        waitingHead = null;
        waitingTail = null;
        boolean lost = false;
        for (Operation operation = messagesHead; operation != null; operation = operation.nextMessage) {
            // What follows a message that is lost was not delivered either, whoever has it.
            if (!operation.done || (lost && operation.failure == null)) {
                lost = true;
                operation.done = true;
                operation.failure = cause.apply(operation);
            }
        }
        failOneSided(posted, cause);
        failOneSided(unposted, cause);
        completeMessages();
    }

    /** The one-sided operations of a list that nobody else has any more; messages in it are in their own list as well. */
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
    boolean tellOutcome() {
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
        if (freeCount < MAX_RECYCLED) {
            operation.next = free;
            free = operation;
            freeCount++;
        }
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
