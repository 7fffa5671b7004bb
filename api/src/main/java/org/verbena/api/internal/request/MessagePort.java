package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.spi.RateLimitedLog;

/** A channel with framing MESSAGE, as the short form sees it. */
public interface MessagePort {
    Channel channel();

    /**
     * All messages are {@link Frames} from now on, before the connection is made. Event loop only.
     *
     * @param bytes what waits above the channel, which counts among its queued bytes
     */
    void beginShortForm0(LongSupplier bytes);

    /** Whether the peer has closed, so that it takes nothing more. Event loop only. */
    boolean hasPeerClosed0();

    /** When the first part of the message that is being read arrived, as far as this end knows. Event loop only. */
    long arrivalNanos0();

    /** How long a message of the program may be: the peer's limit for frames, less their header. Any thread. */
    int maxMessageBytes();

    /** What the connection has carried. Any thread. */
    MessageStatistics statistics();

    /** What {@code verbena stat} shows about the channel; null if nothing. Any thread. */
    @Nullable ConnectionStat stat();

    /** A server's log of what unauthenticated peers cause; null for a channel that has connected. Any thread. */
    @Nullable RateLimitedLog strangers();
}
