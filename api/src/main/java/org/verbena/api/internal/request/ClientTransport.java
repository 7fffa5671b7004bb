package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * A connection of a client, as the client uses it. What happens to it goes to its {@link Owner} and
 * {@link #whenClosed}. Any thread.
 */
public interface ClientTransport {
    /** What the program gets to see of it. */
    Channel channel();

    /** Whether it is still connected. */
    boolean isConnected();

    /** Whether an operation may begin here: it is connected, and has not been left. */
    boolean isUsable();

    /** Whether little waits to be sent. */
    boolean isWritable();

    /** How many operations of this end are under way, which costs a reader no lock: the figure may lag. */
    int load();

    /** What {@link #load()} says, and the requests that have failed lately. */
    int burden();

    /** How many messages and one-sided operations it has carried. */
    long carried();

    /** The time within which nearly all of its replies come; 0 while it has had none. */
    long replyNanos();

    /** Whether it has requests and none of them has had a reply yet. */
    boolean isUnproven();

    /** After which time the server wants its client back, once it has asked it to leave; negative before that. */
    long leavingNanos();

    /** What its streams wait to send. */
    UnsentItems unsent();

    /** Begins an operation, as {@link Operation#start}. */
    <T> Future<T> start(
            Operation<T> operation,
            @Nullable ByteBuf message,
            long timeoutNanos,
            boolean hasFullTimeout,
            boolean mayRedirect);

    /** The reply to a request that was begun here is not needed, since another one has come. */
    void abandon(Future<?> request);

    /** Another connection has answered a request that was here before. */
    void countUnanswered();

    /** The allocator of its memory. */
    ByteBufAllocator alloc();

    /** Runs the listeners of its futures. */
    EventExecutor notifier();

    /**
     * Runs a step later on its loop.
     *
     * @throws java.util.concurrent.RejectedExecutionException the loop has ended
     */
    java.util.concurrent.Future<?> schedule(Runnable step, long delayNanos);

    /** Begins nothing further, and closes when its last request has completed. */
    void leave();

    /** Closes it in good order. Done when it is closed. */
    CompletableFuture<Void> close();

    /** Runs a step on its loop when it is closed, or at once if it is. */
    void whenClosed(Runnable step);

    /** Why it is closed. */
    Throwable closeCause();

    /** The client that a connection belongs to, as the connection sees it. Any thread. */
    interface Owner {
        /** Counts the replies that arrive when their requests wait no more, on all of the client's connections. */
        LongAdder lateReplies();

        /** The server wants no further requests here; it may be connected to again after that time. Once. */
        void leaving(ClientTransport transport, long retryNanos, String reason);

        /** A connection accepts messages again. */
        void writable();

        /** Several requests in a row have had no reply in time on this connection, or later than another connection. */
        void unanswered(ClientTransport transport);

        /** Whether the client's other connections have nearly all replies within this time, as far as is known. */
        boolean othersAnswerWithin(long nanos, ClientTransport except);

        /**
         * Takes an operation that a connection could not begin to another connection, now or later.
         *
         * @param outcome of the operation; may be done by now
         * @param message its ownership is taken, if this returns true
         * @param timeoutNanos what is left of its time
         * @param hasFullTimeout whether that is more than half of it
         * @return false if the client does not: then the connection fails the operation
         */
        <T> boolean goOn(
                Promise<T> outcome, Operation<T> operation, ByteBuf message, long timeoutNanos, boolean hasFullTimeout);
    }
}
