package org.verbena.api;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelOption;
import io.netty.channel.DefaultChannelConfig;
import io.netty.channel.MessageSizeEstimator;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.socket.DatagramChannelConfig;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.DatagramOptions;

/**
 * The options of an {@link RdmaDatagramChannel}: {@code SO_REUSEADDR}, {@code IP_TOS}, {@link
 * RdmaChannelOption#SEND_DEPTH}, {@link RdmaChannelOption#RECEIVE_DEPTH} and {@link RdmaChannelOption#MAX_INLINE_BYTES}
 * on top of what every channel has. They are read when the channel is bound or connected. Those that have no meaning on
 * RDMA throw {@link UnsupportedOperationException}.
 */
final class RdmaDatagramChannelConfig extends DefaultChannelConfig implements DatagramChannelConfig {
    // Written by any thread, read by the loop when it binds.
    private volatile DatagramOptions options = DatagramOptions.DEFAULTS;
    private volatile boolean isAllocatorChosen;

    /** Written by the loop. */
    private volatile @Nullable ByteBufAllocator registeredAllocator;

    RdmaDatagramChannelConfig(RdmaDatagramChannel channel) {
        super(channel);
    }

    /** The device is known now: a channel without a chosen allocator allocates its registered memory. */
    void offer(ByteBufAllocator allocator) {
        registeredAllocator = allocator;
    }

    @Override
    public ByteBufAllocator getAllocator() {
        ByteBufAllocator registered = registeredAllocator;
        return registered == null || isAllocatorChosen ? super.getAllocator() : registered;
    }

    DatagramOptions datagramOptions() {
        return options;
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        return getOptions(
                super.getOptions(),
                ChannelOption.SO_REUSEADDR,
                ChannelOption.IP_TOS,
                RdmaChannelOption.SEND_DEPTH,
                RdmaChannelOption.RECEIVE_DEPTH,
                RdmaChannelOption.MAX_INLINE_BYTES);
    }

    @Override
    @SuppressWarnings("unchecked") // the option's type says what its value is
    public <T> @Nullable T getOption(ChannelOption<T> option) {
        DatagramOptions now = options;
        if (option.equals(ChannelOption.SO_REUSEADDR)) {
            return (T) Boolean.valueOf(now.reuseAddress());
        }
        if (option.equals(ChannelOption.IP_TOS)) {
            return (T) Integer.valueOf(now.trafficClass());
        }
        if (option.equals(RdmaChannelOption.SEND_DEPTH)) {
            return (T) Integer.valueOf(now.sendDepth());
        }
        if (option.equals(RdmaChannelOption.RECEIVE_DEPTH)) {
            return (T) Integer.valueOf(now.receiveDepth());
        }
        if (option.equals(RdmaChannelOption.MAX_INLINE_BYTES)) {
            return (T) Integer.valueOf(now.maxInlineBytes());
        }
        return super.getOption(option);
    }

    @Override
    public synchronized <T> boolean setOption(ChannelOption<T> option, T value) {
        validate(option, value);
        DatagramOptions now = options;
        int number = value instanceof Integer given ? given : 0;
        if (option.equals(ChannelOption.SO_REUSEADDR)) {
            set(now.sendDepth(), now.receiveDepth(), now.maxInlineBytes(), now.trafficClass(), (Boolean) value);
        } else if (option.equals(ChannelOption.IP_TOS)) {
            set(now.sendDepth(), now.receiveDepth(), now.maxInlineBytes(), number, now.reuseAddress());
        } else if (option.equals(RdmaChannelOption.SEND_DEPTH)) {
            set(number, now.receiveDepth(), now.maxInlineBytes(), now.trafficClass(), now.reuseAddress());
        } else if (option.equals(RdmaChannelOption.RECEIVE_DEPTH)) {
            set(now.sendDepth(), number, now.maxInlineBytes(), now.trafficClass(), now.reuseAddress());
        } else if (option.equals(RdmaChannelOption.MAX_INLINE_BYTES)) {
            set(now.sendDepth(), now.receiveDepth(), number, now.trafficClass(), now.reuseAddress());
        } else {
            refuse(option, value);
            return super.setOption(option, value);
        }
        return true;
    }

    /** The options of a UDP socket that have no meaning here. */
    private <T> void refuse(ChannelOption<T> option, T value) {
        if (option.equals(ChannelOption.SO_SNDBUF)) {
            setSendBufferSize((Integer) value);
        } else if (option.equals(ChannelOption.SO_RCVBUF)) {
            setReceiveBufferSize((Integer) value);
        } else if (option.equals(ChannelOption.SO_BROADCAST)) {
            setBroadcast((Boolean) value);
        } else if (option.equals(ChannelOption.IP_MULTICAST_LOOP_DISABLED)) {
            setLoopbackModeDisabled((Boolean) value);
        } else if (option.equals(ChannelOption.IP_MULTICAST_TTL)) {
            setTimeToLive((Integer) value);
        } else if (option.equals(ChannelOption.IP_MULTICAST_ADDR)) {
            setInterface((InetAddress) value);
        } else if (option.equals(ChannelOption.IP_MULTICAST_IF)) {
            setNetworkInterface((NetworkInterface) value);
        }
    }

    private void set(int sendDepth, int receiveDepth, int maxInlineBytes, int trafficClass, boolean reuseAddress) {
        options = new DatagramOptions(
                sendDepth,
                receiveDepth,
                DatagramOptions.DEFAULTS.maxSges(),
                maxInlineBytes,
                trafficClass,
                reuseAddress);
    }

    @Override
    protected void autoReadCleared() {
        ((RdmaDatagramChannel) channel).stopReading();
    }

    private static UnsupportedOperationException none(String option, String instead) {
        return new UnsupportedOperationException("an RDMA datagram channel has no " + option + ": " + instead);
    }

    @Override
    public int getSendBufferSize() {
        throw none("SO_SNDBUF", "SEND_DEPTH says how many sends the device holds");
    }

    @Override
    public DatagramChannelConfig setSendBufferSize(int sendBufferSize) {
        throw none("SO_SNDBUF", "use SEND_DEPTH, the number of sends that the device holds");
    }

    @Override
    public int getReceiveBufferSize() {
        throw none("SO_RCVBUF", "RECEIVE_DEPTH says how many datagrams can come before they are read");
    }

    @Override
    public DatagramChannelConfig setReceiveBufferSize(int receiveBufferSize) {
        throw none("SO_RCVBUF", "use RECEIVE_DEPTH, the number of datagrams that can come before they are read");
    }

    @Override
    public int getTrafficClass() {
        return options.trafficClass();
    }

    @Override
    public DatagramChannelConfig setTrafficClass(int trafficClass) {
        setOption(ChannelOption.IP_TOS, trafficClass);
        return this;
    }

    @Override
    public boolean isReuseAddress() {
        return options.reuseAddress();
    }

    @Override
    public DatagramChannelConfig setReuseAddress(boolean reuseAddress) {
        setOption(ChannelOption.SO_REUSEADDR, reuseAddress);
        return this;
    }

    @Override
    public boolean isBroadcast() {
        return false;
    }

    @Override
    public DatagramChannelConfig setBroadcast(boolean broadcast) {
        if (broadcast) {
            throw none("SO_BROADCAST", "RDMA has multicast groups alone");
        }
        return this;
    }

    @Override
    public boolean isLoopbackModeDisabled() {
        return false;
    }

    @Override
    public DatagramChannelConfig setLoopbackModeDisabled(boolean loopbackModeDisabled) {
        if (loopbackModeDisabled) {
            throw none("IP_MULTICAST_LOOP_DISABLED", "members of a group on this host receive what it sends");
        }
        return this;
    }

    @Override
    public int getTimeToLive() {
        throw none("IP_MULTICAST_TTL", "the connection manager says how far a group reaches");
    }

    @Override
    public DatagramChannelConfig setTimeToLive(int ttl) {
        throw none("IP_MULTICAST_TTL", "the connection manager says how far a group reaches");
    }

    @Override
    public InetAddress getInterface() {
        throw none("IP_MULTICAST_ADDR", "it is that of the device that the channel is bound to");
    }

    @Override
    public DatagramChannelConfig setInterface(InetAddress interfaceAddress) {
        throw none("IP_MULTICAST_ADDR", "bind the channel to the address of the device");
    }

    @Override
    public NetworkInterface getNetworkInterface() {
        throw none("IP_MULTICAST_IF", "it is that of the device that the channel is bound to");
    }

    @Override
    public DatagramChannelConfig setNetworkInterface(NetworkInterface networkInterface) {
        throw none("IP_MULTICAST_IF", "bind the channel to the address of the device");
    }

    @Override
    public DatagramChannelConfig setConnectTimeoutMillis(int connectTimeoutMillis) {
        super.setConnectTimeoutMillis(connectTimeoutMillis);
        return this;
    }

    @Override
    @Deprecated
    public DatagramChannelConfig setMaxMessagesPerRead(int maxMessagesPerRead) {
        super.setMaxMessagesPerRead(maxMessagesPerRead);
        return this;
    }

    @Override
    public DatagramChannelConfig setWriteSpinCount(int writeSpinCount) {
        super.setWriteSpinCount(writeSpinCount);
        return this;
    }

    @Override
    public DatagramChannelConfig setAllocator(ByteBufAllocator allocator) {
        super.setAllocator(allocator);
        isAllocatorChosen = true;
        return this;
    }

    @Override
    public DatagramChannelConfig setRecvByteBufAllocator(RecvByteBufAllocator allocator) {
        super.setRecvByteBufAllocator(allocator);
        return this;
    }

    @Override
    public DatagramChannelConfig setAutoRead(boolean autoRead) {
        super.setAutoRead(autoRead);
        return this;
    }

    @Override
    public DatagramChannelConfig setAutoClose(boolean autoClose) {
        super.setAutoClose(autoClose);
        return this;
    }

    @Override
    public DatagramChannelConfig setWriteBufferWaterMark(WriteBufferWaterMark writeBufferWaterMark) {
        super.setWriteBufferWaterMark(writeBufferWaterMark);
        return this;
    }

    @Override
    public DatagramChannelConfig setMessageSizeEstimator(MessageSizeEstimator estimator) {
        super.setMessageSizeEstimator(estimator);
        return this;
    }
}
