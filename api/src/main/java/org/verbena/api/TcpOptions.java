package org.verbena.api;

import io.netty.channel.Channel;
import io.netty.channel.ChannelOption;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Options that stacks made for TCP always set, and that have no meaning for an RDMA connection. */
final class TcpOptions {
    private static final Logger LOG = LoggerFactory.getLogger(TcpOptions.class);

    /** Credits replace socket buffers, segments leave at each flush, and closing has its own timeout. */
    private static final Set<ChannelOption<?>> WITHOUT_MEANING = Set.of(
            ChannelOption.SO_KEEPALIVE,
            ChannelOption.SO_LINGER,
            ChannelOption.SO_RCVBUF,
            ChannelOption.SO_REUSEADDR,
            ChannelOption.SO_SNDBUF,
            ChannelOption.SO_TIMEOUT,
            ChannelOption.TCP_FASTOPEN,
            ChannelOption.TCP_FASTOPEN_CONNECT,
            ChannelOption.TCP_NODELAY);

    private TcpOptions() {}

    /**
     * Accepts an option and ignores it.
     *
     * @return false if it is none of these
     */
    static <T> boolean accept(Channel channel, ChannelOption<T> option, T value) {
        if (!WITHOUT_MEANING.contains(option)) {
            return false;
        }
        LOG.debug("{}: {} = {} has no meaning for an RDMA connection and is ignored", channel, option, value);
        return true;
    }
}
