package org.verbena.api.internal.ladder;

import io.netty.channel.ChannelConfig;
import io.netty.channel.RecvByteBufAllocator;
import org.verbena.api.LadderSocketChannel;

/**
 * How much a socket under a {@link LadderSocketChannel} reads at once. The socket's own auto-read is off, since it
 * reads when the channel above asks it to, and Netty would then read one buffer at a time. So this handle uses the
 * auto-read of the channel above.
 */
@SuppressWarnings("deprecation") // Netty's interface of that purpose
public final class LadderReads extends RecvByteBufAllocator.DelegatingHandle {
    private final ChannelConfig above;

    public LadderReads(RecvByteBufAllocator.Handle handle, ChannelConfig above) {
        super(handle);
        this.above = above;
    }

    @Override
    public void reset(ChannelConfig socket) {
        super.reset(above);
    }
}
