package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;

/** One message that came in, as far as answering it goes. Any thread. */
public final class Exchange {
    private final Messenger messenger;
    private final long correlation;
    private final boolean request;
    private final AtomicBoolean replied = new AtomicBoolean();

    Exchange(Messenger messenger, long correlation, boolean request) {
        this.messenger = messenger;
        this.correlation = correlation;
        this.request = request;
    }

    /**
     * Whether the peer waits for a reply.
     *
     * @return true if it called {@code request}
     */
    public boolean isRequest() {
        return request;
    }

    /**
     * Answers: the first call for a request is its reply, every other a message of its own.
     *
     * @param message its ownership is taken; for the message that the handler was given, that is {@code message.retain()}
     * @return done when the send has completed
     * @throws IllegalStateException it is the handler's own message, and was not retained
     */
    public Future<Void> send(ByteBuf message) {
        messenger.checkKept(message);
        return request && replied.compareAndSet(false, true)
                ? messenger.send(Messenger.REPLY, correlation, message)
                : messenger.send(Messenger.MESSAGE, 0, message);
    }

    /**
     * Answers, as {@link #send(ByteBuf)} does.
     *
     * @param message copied
     * @return done when the send has completed
     */
    public Future<Void> send(byte[] message) {
        return send(messenger.copy(message));
    }

    /**
     * The connection it came on, for one-sided operations and all else.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return messenger.channel();
    }

    /** Says that the handler failed, if the peer waits still. */
    void fail(Throwable cause) {
        if (request && replied.compareAndSet(false, true)) {
            messenger.sendFailure(correlation, cause);
        }
    }
}
