package org.verbena.api;

import io.netty.channel.Channel;
import io.netty.channel.ChannelOption;
import io.netty.channel.socket.SocketChannelConfig;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.verbena.api.internal.option.OptionRow;
import org.verbena.api.internal.option.TcpOptions;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RdmaProvider;

/**
 * The options of a socket: {@link ChannelOption#ALLOW_HALF_CLOSURE}, {@link ChannelOption#SO_LINGER} and {@link
 * ChannelOption#IP_TOS} work as for TCP; those that only TCP has are kept and have no effect ({@link TcpOptions}). Any
 * thread.
 */
class RdmaSocketChannelConfig extends RdmaChannelConfig<SocketChannelConfig> implements SocketChannelConfig {
    /** Large enough for the software provider to read in place, small enough to be one FPDU with its headers. */
    private static final int RECEIVE_BUFFER_BYTES = 63 * 1024;

    /** The rows of every channel of bytes. */
    static final Map<ChannelOption<?>, OptionRow<?>> STREAM_ROWS = withConnection(
            TcpOptions.ROWS,
            Framing.STREAM,
            OptionRow.kept(ChannelOption.ALLOW_HALF_CLOSURE, false),
            OptionRow.kept(ChannelOption.SO_LINGER, -1).as(seconds -> Math.max(seconds, -1)),
            // Sockets take it at any time; here it is read when the connection is made.
            OptionRow.within(OptionRow.kept(ChannelOption.IP_TOS, EndpointOptions.DEFAULTS.trafficClass()), 0, 255),
            receiveBufferBytes(config -> config.get(RdmaChannelOption.SHARED_RECEIVE_QUEUE)
                    ? MessageOptions.DEFAULTS.receiveBufferBytes()
                    : RECEIVE_BUFFER_BYTES),
            // Many small frames of a protocol fill one receive buffer, and each takes an SGE.
            maxSges(MessageOptions.DEVICE_DEFAULT),
            // Never: a stream's reader takes bytes as they arrive, and rendezvous would make it wait for a whole write.
            rendezvousThresholdBytes(Integer.MAX_VALUE));

    RdmaSocketChannelConfig(RdmaSocketChannel channel) {
        super(STREAM_ROWS, channel, channel::hasStarted, channel::stopReading);
    }

    /** Creates the options of a channel that hands them on to another. */
    RdmaSocketChannelConfig(
            Map<ChannelOption<?>, OptionRow<?>> table,
            Channel channel,
            BooleanSupplier hasStarted,
            Runnable stopReading) {
        super(table, channel, hasStarted, stopReading);
    }

    @Override
    int greatestReceiveDepth(RdmaProvider provider) {
        return provider.usualStreamReceives();
    }

    @Override
    int lingerSeconds() {
        return getSoLinger();
    }
}
