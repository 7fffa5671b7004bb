package org.verbena.api;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelOption;
import io.netty.channel.MessageSizeEstimator;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.socket.ServerSocketChannelConfig;
import java.util.Map;
import org.verbena.transport.spi.ListenOptions;

/** The options of a server socket: those of TCP alone are kept ({@link TcpOptions}). Any thread. */
final class RdmaServerSocketChannelConfig extends RdmaServerChannelConfig implements ServerSocketChannelConfig {
    private final TcpOptions tcp = new TcpOptions();

    // Written by any thread, read by the loop when it binds.
    private volatile boolean plainTcp;
    private volatile int plainTcpAfterMillis;

    RdmaServerSocketChannelConfig(RdmaServerSocketChannel channel) {
        super(channel);
    }

    @Override
    ListenOptions listenOptions() {
        ListenOptions rest = super.listenOptions();
        return new ListenOptions(rest.backlog(), rest.reuseAddress(), plainTcp, plainTcpAfterMillis);
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        Map<ChannelOption<?>, Object> options =
                getOptions(super.getOptions(), RdmaChannelOption.PLAIN_TCP, RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS);
        tcp.values().forEach(options::putIfAbsent);
        return options;
    }

    @Override
    @SuppressWarnings({"unchecked", "NullAway"
    }) // the option's type says what its value is; Netty gives null for others
    public <T> T getOption(ChannelOption<T> option) {
        if (option.equals(RdmaChannelOption.PLAIN_TCP)) {
            return (T) Boolean.valueOf(plainTcp);
        }
        if (option.equals(RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS)) {
            return (T) Integer.valueOf(plainTcpAfterMillis);
        }
        T known = super.getOption(option);
        return known == null ? tcp.get(option) : known;
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        if (option.equals(RdmaChannelOption.PLAIN_TCP)) {
            validate(option, value);
            plainTcp = (Boolean) value;
            return true;
        }
        if (option.equals(RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS)) {
            validate(option, value);
            plainTcpAfterMillis = new ListenOptions(1, true, true, (Integer) value).plainTcpAfterMillis();
            return true;
        }
        return super.setOption(option, value) || tcp.set(option, value);
    }

    // ---- the same by name

    private <T> ServerSocketChannelConfig set(ChannelOption<T> option, T value) {
        setOption(option, value);
        return this;
    }

    @Override
    public int getBacklog() {
        return backlog();
    }

    @Override
    public ServerSocketChannelConfig setBacklog(int backlog) {
        return set(ChannelOption.SO_BACKLOG, backlog);
    }

    @Override
    public boolean isReuseAddress() {
        return getOption(ChannelOption.SO_REUSEADDR);
    }

    @Override
    public ServerSocketChannelConfig setReuseAddress(boolean reuseAddress) {
        return set(ChannelOption.SO_REUSEADDR, reuseAddress);
    }

    @Override
    public int getReceiveBufferSize() {
        return getOption(ChannelOption.SO_RCVBUF);
    }

    @Override
    public ServerSocketChannelConfig setReceiveBufferSize(int receiveBufferSize) {
        return set(ChannelOption.SO_RCVBUF, receiveBufferSize);
    }

    /** Does nothing, as for the JDK's own sockets. */
    @Override
    public ServerSocketChannelConfig setPerformancePreferences(int connectionTime, int latency, int bandwidth) {
        return this;
    }

    // ---- Netty's own, whose result is this type

    @Override
    public ServerSocketChannelConfig setConnectTimeoutMillis(int connectTimeoutMillis) {
        super.setConnectTimeoutMillis(connectTimeoutMillis);
        return this;
    }

    @Override
    @Deprecated
    public ServerSocketChannelConfig setMaxMessagesPerRead(int maxMessagesPerRead) {
        super.setMaxMessagesPerRead(maxMessagesPerRead);
        return this;
    }

    @Override
    public ServerSocketChannelConfig setWriteSpinCount(int writeSpinCount) {
        super.setWriteSpinCount(writeSpinCount);
        return this;
    }

    @Override
    public ServerSocketChannelConfig setAllocator(ByteBufAllocator allocator) {
        super.setAllocator(allocator);
        return this;
    }

    @Override
    public ServerSocketChannelConfig setRecvByteBufAllocator(RecvByteBufAllocator allocator) {
        super.setRecvByteBufAllocator(allocator);
        return this;
    }

    @Override
    public ServerSocketChannelConfig setAutoRead(boolean autoRead) {
        super.setAutoRead(autoRead);
        return this;
    }

    @Override
    public ServerSocketChannelConfig setMessageSizeEstimator(MessageSizeEstimator estimator) {
        super.setMessageSizeEstimator(estimator);
        return this;
    }

    @Override
    public ServerSocketChannelConfig setWriteBufferHighWaterMark(int highWaterMark) {
        super.setWriteBufferHighWaterMark(highWaterMark);
        return this;
    }

    @Override
    public ServerSocketChannelConfig setWriteBufferLowWaterMark(int lowWaterMark) {
        super.setWriteBufferLowWaterMark(lowWaterMark);
        return this;
    }

    @Override
    public ServerSocketChannelConfig setWriteBufferWaterMark(WriteBufferWaterMark waterMark) {
        super.setWriteBufferWaterMark(waterMark);
        return this;
    }
}
