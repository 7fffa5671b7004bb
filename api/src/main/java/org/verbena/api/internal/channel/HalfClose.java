package org.verbena.api.internal.channel;

import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPromise;
import io.netty.channel.socket.DuplexChannel;

/** What channels with two halves have in common. */
public final class HalfClose {
    private HalfClose() {}

    /**
     * Closes the output and then the input, even if closing the output fails. Any thread.
     *
     * @param channel whose halves to close
     * @param promise has the outcome of both
     * @return the promise
     */
    public static ChannelFuture shutdown(DuplexChannel channel, ChannelPromise promise) {
        channel.shutdownOutput().addListener(ended -> {
            if (ended.isSuccess()) {
                channel.shutdownInput(promise);
            } else {
                channel.shutdownInput();
                promise.tryFailure(ended.cause());
            }
        });
        return promise;
    }
}
