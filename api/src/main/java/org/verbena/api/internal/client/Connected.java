package org.verbena.api.internal.client;

import io.netty.channel.Channel;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.request.ClientTransport;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.ConnectionException;

/**
 * A connection of a client that is up.
 *
 * @param transport connected
 * @param ladder the rung that it is; null without a ladder
 */
public record Connected(ClientTransport transport, @Nullable LadderResult ladder) {

    /**
     * That of a channel which has connected.
     *
     * @throws ConnectionException.Lost it has closed since
     */
    public static Connected of(Channel channel) {
        Messenger messenger = channel.pipeline().get(Messenger.class);
        if (messenger == null) { // a channel that has closed has no handlers
            throw new ConnectionException.Lost(
                    "connect to " + channel.remoteAddress() + ": the connection was lost at once");
        }
        return new Connected(messenger, LadderResult.of(channel));
    }

    /** What the program gets to see of it. */
    public Channel channel() {
        return transport.channel();
    }
}
