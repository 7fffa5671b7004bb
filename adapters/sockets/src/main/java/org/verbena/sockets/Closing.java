package org.verbena.sockets;

import io.netty.channel.Channel;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Sockets that are closed and still send what was written. A kernel does that for TCP even after the process has ended;
 * here the process waits for them when it ends in good order.
 */
final class Closing {
    /** By then a channel gives up a peer that accepts nothing. */
    private static final int LIMIT_SECONDS = 10;

    private static final ChannelGroup CHANNELS = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);

    static {
        try {
            Runtime.getRuntime()
                    .addShutdownHook(new Thread(
                            () -> CHANNELS.newCloseFuture().awaitUninterruptibly(LIMIT_SECONDS, TimeUnit.SECONDS),
                            "verbena-sockets-closing"));
        } catch (IllegalStateException ending) {
            // The first socket is closed while the process ends: nothing waits for it.
        }
    }

    private Closing() {}

    /** Closes a channel after what was written to it. */
    static void close(Channel channel) {
        CHANNELS.add(channel);
        channel.close();
    }
}
