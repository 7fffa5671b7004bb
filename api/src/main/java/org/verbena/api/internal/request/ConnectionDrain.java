package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How a server that is leaving ends a connection:
 *
 * <pre>{@code
 *  handshake --> closed
 *  active                        --> LEAVING sent --its LEAVE--> closed
 *  active, and there is no memory --nothing is open--> closed
 *                                                      closed --no handler runs--> done
 * }</pre>
 *
 * <p>A client that was asked to leave goes on elsewhere with its further requests, and leaves when it has its replies
 * here. Requests that it has sent until then are handled as usual.
 */
final class ConnectionDrain {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionDrain.class);

    private final Messenger messenger;
    private final Channel channel;
    private final CompletableFuture<Boolean> done = new CompletableFuture<>();

    /** Event loop only. */
    private boolean foundOpen;

    /** Written by the loop. */
    private volatile boolean answeredAll = true;

    /** Whether the client ends it. */
    private volatile boolean clientLeaves;

    ConnectionDrain(Messenger messenger) {
        this.messenger = messenger;
        channel = messenger.channel();
    }

    /** Done when the connection has ended and no handler runs for it: with whether it has answered all. */
    CompletableFuture<Boolean> done() {
        return done;
    }

    boolean hasAnsweredAll() {
        return answeredAll;
    }

    /** The connection ends, and requests have no answer for which their clients wait. On the loop. */
    void unanswered0() {
        if (foundOpen) { // else they lost their clients before
            answeredAll = false;
        }
    }

    void begin0(String reason) {
        foundOpen = channel.isOpen();
        ShortForm.done(channel.closeFuture()).thenRun(this::check);
        if (!channel.isActive()) {
            channel.close(); // a client in the handshake has sent nothing yet
        } else {
            clientLeaves = true;
            messenger.outgoing().leaving(reason).addListener(asked -> {
                if (!asked.isSuccess()) { // there is no memory, or the connection is gone
                    clientLeaves = false;
                    check();
                }
            });
        }
        check0();
    }

    /** Something that it waits for has ended. Any thread. */
    void check() {
        try {
            channel.eventLoop().execute(this::check0);
        } catch (RejectedExecutionException ended) {
            LOG.trace("{}: the event loop has ended, and closed it", channel, ended);
            check0();
        }
    }

    private void check0() {
        if (!messenger.handlers().isIdle()) {
            return;
        }
        if (!channel.isOpen()) {
            done.complete(answeredAll);
        } else if (!clientLeaves) {
            channel.close();
        }
    }
}
