package org.verbena.api;

import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOption;
import java.util.Map;
import org.verbena.api.internal.option.OptionRow;
import org.verbena.api.internal.option.TableConfig;
import org.verbena.transport.spi.ListenOptions;

/**
 * {@link ChannelOption#SO_BACKLOG} and {@link ChannelOption#SO_REUSEADDR} on top of what every channel has. They are
 * read when the channel binds. Any thread.
 *
 * @param <C> the interface that setters return
 */
class RdmaServerChannelConfig<C extends ChannelConfig> extends TableConfig<C> {
    private static final Map<ChannelOption<?>, OptionRow<?>> ROWS = withServer(TableConfig.ROWS);

    RdmaServerChannelConfig(RdmaServerChannel channel) {
        this(ROWS, channel);
    }

    RdmaServerChannelConfig(Map<ChannelOption<?>, OptionRow<?>> table, RdmaServerChannel channel) {
        super(table, ofNetty(channel, channel::stopReading));
    }

    /** Adds a server's rows to others. */
    static Map<ChannelOption<?>, OptionRow<?>> withServer(
            Map<ChannelOption<?>, OptionRow<?>> others, OptionRow<?>... more) {
        Map<ChannelOption<?>, OptionRow<?>> rows = OptionRow.table(
                others,
                OptionRow.kept(ChannelOption.SO_BACKLOG, ListenOptions.DEFAULTS.backlog())
                        .checked((config, backlog) -> new ListenOptions(backlog, true)),
                OptionRow.kept(ChannelOption.SO_REUSEADDR, ListenOptions.DEFAULTS.reuseAddress()));
        return OptionRow.table(rows, more);
    }

    ListenOptions listenOptions() {
        return new ListenOptions(getBacklog(), isReuseAddress());
    }
}
