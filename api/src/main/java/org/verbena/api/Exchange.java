package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A message that arrived, as seen by whoever answers it. All methods may be called on any thread. */
public final class Exchange {
    private final Messenger messenger;
    private final long correlation;
    private final boolean request;
    private final AtomicBoolean replied = new AtomicBoolean();

    /** The message that a handler on a virtual thread has now. Written by that thread. */
    private volatile @Nullable ByteBuf handled;

    Exchange(Messenger messenger, long correlation, boolean request) {
        this.messenger = messenger;
        this.correlation = correlation;
        this.request = request;
    }

    /**
     * Tells whether the peer waits for a reply.
     *
     * @return true if it called {@code request}
     */
    public boolean isRequest() {
        return request;
    }

    /**
     * Answers: the first call for a request sends its reply, every other call a message of its own.
     *
     * @param message its ownership is taken; for the message that the handler was given, pass {@code message.retain()}
     * @return done when the send has completed
     * @throws IllegalStateException it is the handler's own message, and was not retained
     */
    public Future<Void> send(ByteBuf message) {
        messenger.checkKept(this, message);
        return answer(message);
    }

    /**
     * Answers, as {@link #send(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(byte[] message) {
        return messenger.completable(answer(messenger.copy(message)));
    }

    /**
     * Answers, as {@link #send(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(ByteBuffer message) {
        return messenger.completable(answer(messenger.copy(message)));
    }

    private Future<Void> answer(@Nullable ByteBuf message) {
        return message != null && request && replied.compareAndSet(false, true)
                ? messenger.send(Messenger.REPLY, correlation, message)
                : messenger.send(Messenger.MESSAGE, 0, message);
    }

    /**
     * Returns the connection that the message arrived on, for one-sided operations and all else.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return messenger.channel();
    }

    /** Tells the peer that the handler failed, if it still waits for a reply. */
    void fail(Throwable cause) {
        if (request && replied.compareAndSet(false, true)) {
            messenger.sendFailure(correlation, cause);
        }
    }

    void setHandled(@Nullable ByteBuf message) {
        handled = message;
    }

    @Nullable ByteBuf handled() {
        return handled;
    }
}
