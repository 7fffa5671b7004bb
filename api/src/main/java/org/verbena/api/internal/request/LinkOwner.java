package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Promise;
import java.util.concurrent.atomic.LongAdder;

/** The client that a connection belongs to, as the connection sees it. Any thread. */
public interface LinkOwner {
    /** Counts the replies that arrive when their requests wait no more, on all of the client's connections. */
    LongAdder lateReplies();

    /** The server wants no further requests on this connection; it may be connected to again after that time. Once. */
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
