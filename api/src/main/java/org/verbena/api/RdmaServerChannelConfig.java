package org.verbena.api;

import io.netty.channel.ChannelOption;
import io.netty.channel.DefaultChannelConfig;
import java.util.Map;
import org.verbena.transport.spi.ListenOptions;

/** {@link ChannelOption#SO_BACKLOG} and {@link ChannelOption#SO_REUSEADDR} on top of what every channel has. */
class RdmaServerChannelConfig extends DefaultChannelConfig {
    // Written by any thread, read by the loop when it binds.
    private volatile int backlog = ListenOptions.DEFAULTS.backlog();
    private volatile boolean reuseAddress = ListenOptions.DEFAULTS.reuseAddress();

    RdmaServerChannelConfig(RdmaServerChannel channel) {
        super(channel);
    }

    ListenOptions listenOptions() {
        return new ListenOptions(backlog, reuseAddress);
    }

    int backlog() {
        return backlog;
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        return getOptions(super.getOptions(), ChannelOption.SO_BACKLOG, ChannelOption.SO_REUSEADDR);
    }

    @Override
    @SuppressWarnings("unchecked") // the option's type says what its value is
    public <T> T getOption(ChannelOption<T> option) {
        if (option.equals(ChannelOption.SO_BACKLOG)) {
            return (T) Integer.valueOf(backlog);
        }
        if (option.equals(ChannelOption.SO_REUSEADDR)) {
            return (T) Boolean.valueOf(reuseAddress);
        }
        return super.getOption(option);
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        validate(option, value);
        if (option.equals(ChannelOption.SO_BACKLOG)) {
            backlog = new ListenOptions((Integer) value, reuseAddress).backlog();
            return true;
        }
        if (option.equals(ChannelOption.SO_REUSEADDR)) {
            reuseAddress = (Boolean) value;
            return true;
        }
        return super.setOption(option, value);
    }

    @Override
    protected void autoReadCleared() {
        ((RdmaServerChannel) channel).stopReading();
    }
}
