package org.verbena.api.datagram;

import io.netty.channel.ChannelOption;
import io.netty.channel.socket.DatagramChannelConfig;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.Map;
import java.util.function.Predicate;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.internal.option.OptionRow;
import org.verbena.api.internal.option.TableConfig;
import org.verbena.transport.spi.DatagramOptions;

/**
 * The options of an {@link RdmaDatagramChannel}: {@code SO_REUSEADDR}, {@code IP_TOS}, {@link
 * RdmaChannelOption#SEND_DEPTH}, {@link RdmaChannelOption#RECEIVE_DEPTH} and {@link RdmaChannelOption#MAX_INLINE_BYTES}
 * on top of what every channel has. They are read when the channel is bound or connected. Those that have no meaning on
 * RDMA throw {@link UnsupportedOperationException}. Any thread.
 */
final class RdmaDatagramChannelConfig extends TableConfig<DatagramChannelConfig> implements DatagramChannelConfig {
    private static final DatagramOptions PRESETS = DatagramOptions.DEFAULTS;

    /** The options of a UDP socket that have no meaning here, with their replacements. */
    private static final Map<ChannelOption<?>, String> INSTEAD = Map.of(
            ChannelOption.SO_SNDBUF, "use SEND_DEPTH, the number of sends that the device holds",
            ChannelOption.SO_RCVBUF, "use RECEIVE_DEPTH, the number of datagrams that can come before they are read",
            ChannelOption.SO_BROADCAST, "RDMA has only multicast groups",
            ChannelOption.IP_MULTICAST_LOOP_DISABLED, "members of a group on this host receive what it sends",
            ChannelOption.IP_MULTICAST_TTL, "the connection manager says how far a group reaches",
            ChannelOption.IP_MULTICAST_ADDR, "bind the channel to the address of the device",
            ChannelOption.IP_MULTICAST_IF, "bind the channel to the address of the device");

    private static final Map<ChannelOption<?>, OptionRow<?>> ROWS = OptionRow.table(
            TableConfig.ROWS,
            OptionRow.kept(ChannelOption.SO_REUSEADDR, PRESETS.reuseAddress()),
            number(ChannelOption.IP_TOS, 0, 255, PRESETS.trafficClass()),
            number(RdmaChannelOption.SEND_DEPTH, 1, 1 << 16, PRESETS.sendDepth()),
            number(RdmaChannelOption.RECEIVE_DEPTH, 1, 1 << 16, PRESETS.receiveDepth()),
            number(RdmaChannelOption.MAX_INLINE_BYTES, 0, 1 << 16, PRESETS.maxInlineBytes()),
            refused(ChannelOption.SO_SNDBUF, any -> true),
            refused(ChannelOption.SO_RCVBUF, any -> true),
            refused(ChannelOption.SO_BROADCAST, wanted -> wanted),
            refused(ChannelOption.IP_MULTICAST_LOOP_DISABLED, wanted -> wanted),
            refused(ChannelOption.IP_MULTICAST_TTL, any -> true),
            refused(ChannelOption.IP_MULTICAST_ADDR, any -> true),
            refused(ChannelOption.IP_MULTICAST_IF, any -> true));

    RdmaDatagramChannelConfig(RdmaDatagramChannel channel) {
        super(ROWS, ofNetty(channel, channel::stopReading));
    }

    private static OptionRow<Integer> number(ChannelOption<Integer> option, int min, int max, int preset) {
        return OptionRow.within(OptionRow.kept(option, preset), min, max);
    }

    private static <T> OptionRow<T> refused(ChannelOption<T> option, Predicate<T> values) {
        return OptionRow.refused(option, (config, value) -> {
            if (values.test(value)) {
                throw none(option);
            }
        });
    }

    private static UnsupportedOperationException none(ChannelOption<?> option) {
        return new UnsupportedOperationException(
                "an RDMA datagram channel has no " + option + ": " + INSTEAD.get(option));
    }

    DatagramOptions datagramOptions() {
        return new DatagramOptions(
                get(RdmaChannelOption.SEND_DEPTH),
                get(RdmaChannelOption.RECEIVE_DEPTH),
                PRESETS.maxSges(),
                get(RdmaChannelOption.MAX_INLINE_BYTES),
                getTrafficClass(),
                isReuseAddress());
    }

    // ---- by name: what only UDP sockets have

    private <T> DatagramChannelConfig set(ChannelOption<T> option, T value) {
        setOption(option, value);
        return this;
    }

    @Override
    public int getSendBufferSize() {
        throw none(ChannelOption.SO_SNDBUF);
    }

    @Override
    public int getReceiveBufferSize() {
        throw none(ChannelOption.SO_RCVBUF);
    }

    @Override
    public boolean isBroadcast() {
        return false;
    }

    @Override
    public DatagramChannelConfig setBroadcast(boolean broadcast) {
        return set(ChannelOption.SO_BROADCAST, broadcast);
    }

    @Override
    public boolean isLoopbackModeDisabled() {
        return false;
    }

    @Override
    public DatagramChannelConfig setLoopbackModeDisabled(boolean disabled) {
        return set(ChannelOption.IP_MULTICAST_LOOP_DISABLED, disabled);
    }

    @Override
    public int getTimeToLive() {
        throw none(ChannelOption.IP_MULTICAST_TTL);
    }

    @Override
    public DatagramChannelConfig setTimeToLive(int ttl) {
        return set(ChannelOption.IP_MULTICAST_TTL, ttl);
    }

    @Override
    public InetAddress getInterface() {
        throw none(ChannelOption.IP_MULTICAST_ADDR);
    }

    @Override
    public DatagramChannelConfig setInterface(InetAddress address) {
        return set(ChannelOption.IP_MULTICAST_ADDR, address);
    }

    @Override
    public NetworkInterface getNetworkInterface() {
        throw none(ChannelOption.IP_MULTICAST_IF);
    }

    @Override
    public DatagramChannelConfig setNetworkInterface(NetworkInterface networkInterface) {
        return set(ChannelOption.IP_MULTICAST_IF, networkInterface);
    }
}
