package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.spi.RateLimitedLog;

/** A channel with framing MESSAGE, as the short form sees it. */
public interface MessagePort {
    Channel channel();

    /** Has room for a header in front of the program's bytes, before the connection is made. Event loop only. */
    void reserveHeader0(int bytes);

    /** What this end's program tells the peer's in the handshake, before the connection is made. Event loop only. */
    void announce0(int features);

    /** Whether the peer's program announced this feature. Event loop only, once active. */
    boolean peerTakes0(int feature);

    /** When the message began to come that is being read, as far as this end can tell. Event loop only. */
    long arrivalNanos0();

    /** What {@code verbena stat} shows of the channel; null if nothing. Any thread. */
    @Nullable ConnectionStat stat();

    /** Where a server says what strangers do; null for a channel that has connected. Any thread. */
    @Nullable RateLimitedLog strangers();
}
