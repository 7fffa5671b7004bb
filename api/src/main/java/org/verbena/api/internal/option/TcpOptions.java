package org.verbena.api.internal.option;

import io.netty.channel.ChannelOption;
import java.util.Map;

/**
 * Options of TCP sockets that mean nothing to an RDMA connection, kept so that a program which sets one can read it
 * back: credits take the place of socket buffers, segments leave at each flush, and {@code KEEP_ALIVE_MILLIS} watches
 * the peer.
 */
public final class TcpOptions {
    private static final int BUFFER_BYTES = 64 << 10;

    public static final Map<ChannelOption<?>, OptionRow<?>> ROWS = OptionRow.table(
            TableConfig.ROWS,
            OptionRow.kept(ChannelOption.SO_KEEPALIVE, false),
            buffer(ChannelOption.SO_RCVBUF),
            OptionRow.kept(ChannelOption.SO_REUSEADDR, false),
            buffer(ChannelOption.SO_SNDBUF),
            OptionRow.kept(ChannelOption.SO_TIMEOUT, 0),
            OptionRow.kept(ChannelOption.TCP_FASTOPEN, 0),
            OptionRow.kept(ChannelOption.TCP_FASTOPEN_CONNECT, false),
            OptionRow.kept(ChannelOption.TCP_NODELAY, true));

    private TcpOptions() {}

    private static OptionRow<Integer> buffer(ChannelOption<Integer> option) {
        return OptionRow.kept(option, BUFFER_BYTES).checked((config, bytes) -> {
            if (bytes < 1) {
                throw new IllegalArgumentException(option + " " + bytes + " is not positive");
            }
        });
    }
}
