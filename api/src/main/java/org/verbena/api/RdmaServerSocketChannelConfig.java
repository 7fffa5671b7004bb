package org.verbena.api;

import io.netty.channel.ChannelOption;
import io.netty.channel.socket.ServerSocketChannelConfig;
import java.util.Map;
import org.verbena.api.internal.option.OptionRow;
import org.verbena.api.internal.option.TcpOptions;
import org.verbena.transport.spi.ListenOptions;

/** The options of a server socket: those that only TCP has are kept ({@link TcpOptions}). Any thread. */
final class RdmaServerSocketChannelConfig extends RdmaServerChannelConfig<ServerSocketChannelConfig>
        implements ServerSocketChannelConfig {

    private static final Map<ChannelOption<?>, OptionRow<?>> ROWS = withServer(
            TcpOptions.ROWS,
            OptionRow.kept(RdmaChannelOption.PLAIN_TCP, false),
            OptionRow.kept(RdmaChannelOption.ACCEPT_MESSAGES, false),
            OptionRow.kept(RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS, 0)
                    .checked((config, millis) -> new ListenOptions(1, true, true, millis)));

    RdmaServerSocketChannelConfig(RdmaServerSocketChannel channel) {
        super(ROWS, channel);
    }

    @Override
    ListenOptions listenOptions() {
        return new ListenOptions(
                getBacklog(),
                isReuseAddress(),
                get(RdmaChannelOption.PLAIN_TCP),
                get(RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS));
    }
}
