package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import io.netty.util.IllegalReferenceCountException;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.RequestException;

/** What it means for a request that one of its sends has failed. */
final class SendFailures {
    private SendFailures() {}

    /** Whether it refuses one message, which was not sent then, and leaves the connection up. */
    static boolean refusesOnlyIt(Throwable cause) {
        return cause instanceof MessageTooLargeException
                || cause instanceof RegisteredMemoryExhaustedException
                || cause instanceof IllegalReferenceCountException
                || cause instanceof RequestException
                || cause instanceof OutOfMemoryError;
    }

    /** The failure of the connection, whatever it is, for requests that the server may have begun. */
    static ConnectionException begun(Channel channel, Throwable cause) {
        String message = cause instanceof ConnectionException
                ? String.valueOf(cause.getMessage())
                : "request to " + channel.remoteAddress() + ": the connection is lost: " + cause.getMessage();
        return new ConnectionException.Lost(message, cause, true);
    }
}
