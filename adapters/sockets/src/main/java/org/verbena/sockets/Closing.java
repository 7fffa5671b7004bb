package org.verbena.sockets;

import io.netty.channel.Channel;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Sockets that are closed and still send what was written. For TCP, the kernel does that even after the process has
 * ended; here a process that ends in good order waits for them.
 */
final class Closing {
    /** A channel gives up within this time if its peer accepts nothing. */
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

    /** Closes a channel once everything written to it has been sent. */
    static void close(Channel channel) {
        CHANNELS.add(channel);
        channel.close();
    }
}
