package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.util.concurrent.CompletableFuture;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.request.Frames;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.Operation;
import org.verbena.transport.ConnectionException;

/**
 * The server at the other end of one connection of an {@link RdmaClient}. What is sent here goes to that server, or
 * fails with the connection; the client never continues it elsewhere. Any thread.
 *
 * @see RdmaClient.Builder#onConnection
 */
public final class ConnectedServer {
    private final RdmaChannel channel;
    private final Messenger messenger;
    private final long timeoutNanos;

    ConnectedServer(RdmaChannel channel, long timeoutNanos) {
        this.channel = channel;
        this.timeoutNanos = timeoutNanos;
        Messenger found = channel.pipeline().get(Messenger.class);
        if (found == null) { // a channel that has closed has no handlers
            throw new ConnectionException.Lost("connect to " + channel.remoteAddress() + ": the connection was lost");
        }
        messenger = found;
    }

    /**
     * Sends it a message.
     *
     * @param message its ownership is taken
     * @return done when the send has completed
     */
    public Future<Void> send(ByteBuf message) {
        return messenger.send(message);
    }

    /**
     * Sends it a message, as {@link #send(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(byte[] message) {
        return messenger.send(message);
    }

    /**
     * Sends it a request, with the client's request timeout.
     *
     * @param message copied before this returns
     * @return the reply, on the event loop; fails as {@link RdmaClient#request(byte[])} does
     */
    public CompletableFuture<byte[]> request(byte[] message) {
        ByteBuf copy = Frames.copyOf(channel.alloc(), Messenger.buffer(message));
        return LoopFuture.of(Operation.REQUEST_BYTES.start(messenger, copy, timeoutNanos, true, false));
    }

    /**
     * Returns the connection, for its addresses, one-sided operations and everything else. Its {@code closeFuture()} is
     * done when it has ended.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return channel;
    }

    @Override
    public String toString() {
        return "server " + channel;
    }
}
