package org.verbena.api;

import io.netty.channel.ChannelOption;
import java.util.Map;
import org.verbena.transport.protocol.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.spi.RdmaProvider;

/** Adds {@link ChannelOption#ALLOW_HALF_CLOSURE}; accepts and ignores the options of TCP. Any thread. */
final class RdmaStreamChannelConfig extends RdmaChannelConfig {
    /** Large enough for the software provider to read in place, small enough to be one FPDU with its headers. */
    private static final int RECEIVE_BUFFER_BYTES = 63 * 1024;

    /** Never: a stream's reader takes bytes as they arrive, whereas rendezvous would make it wait for a whole write. */
    private static final int RENDEZVOUS_THRESHOLD_BYTES = Integer.MAX_VALUE;

    // Written by any thread, read by the loop.
    private volatile boolean allowHalfClosure;

    RdmaStreamChannelConfig(RdmaStreamChannel channel) {
        super(channel, Framing.STREAM);
    }

    @Override
    int preset(ChannelOption<Integer> option, int usual) {
        if (option.equals(RdmaChannelOption.RECEIVE_BUFFER_BYTES)) {
            return sharedReceiveQueue() ? usual : RECEIVE_BUFFER_BYTES;
        }
        if (option.equals(RdmaChannelOption.MAX_SGES)) {
            // Many small frames of a protocol fill one receive buffer, and each is a piece.
            return MessageOptions.DEVICE_DEFAULT;
        }
        return option.equals(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES) ? RENDEZVOUS_THRESHOLD_BYTES : usual;
    }

    @Override
    int greatestReceiveDepth(RdmaProvider provider) {
        return provider.usualStreamReceives();
    }

    /** Sockets take it at any time; here it is read when the connection is made. */
    @Override
    boolean isTakenLate(ChannelOption<?> option) {
        return option.equals(ChannelOption.IP_TOS);
    }

    boolean isAllowHalfClosure() {
        return allowHalfClosure;
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        return getOptions(super.getOptions(), ChannelOption.ALLOW_HALF_CLOSURE);
    }

    @Override
    @SuppressWarnings("unchecked") // the option's type says what its value is
    public <T> T getOption(ChannelOption<T> option) {
        if (option.equals(ChannelOption.ALLOW_HALF_CLOSURE)) {
            return (T) Boolean.valueOf(allowHalfClosure);
        }
        return super.getOption(option);
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        if (option.equals(ChannelOption.ALLOW_HALF_CLOSURE)) {
            validate(option, value);
            allowHalfClosure = (Boolean) value;
            return true;
        }
        return super.setOption(option, value) || TcpOptions.accept(channel, option, value);
    }
}
