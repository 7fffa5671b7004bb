package org.verbena.api;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOption;
import io.netty.channel.MessageSizeEstimator;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.socket.SocketChannelConfig;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.spi.RdmaProvider;

/**
 * The options of a socket: {@link ChannelOption#ALLOW_HALF_CLOSURE}, {@link ChannelOption#SO_LINGER} and {@link ChannelOption#IP_TOS} work as
 * they do for TCP, and those of TCP alone are kept ({@link TcpOptions}). Any thread.
 */
class RdmaSocketChannelConfig extends RdmaChannelConfig implements SocketChannelConfig {
    /** Large enough for the software provider to read in place, small enough to be one FPDU with its headers. */
    private static final int RECEIVE_BUFFER_BYTES = 63 * 1024;

    /** Never: a stream's reader takes bytes as they arrive, whereas rendezvous would make it wait for a whole write. */
    private static final int RENDEZVOUS_THRESHOLD_BYTES = Integer.MAX_VALUE;

    private final TcpOptions tcp = new TcpOptions();

    // Written by any thread, read by the loop.
    private volatile boolean allowHalfClosure;
    private volatile int lingerSeconds = -1;

    RdmaSocketChannelConfig(RdmaSocketChannel channel) {
        super(channel, Framing.STREAM);
    }

    /** Creates the options of a channel that hands them on to another. */
    RdmaSocketChannelConfig(Channel channel, BooleanSupplier hasStarted, Runnable stopReading) {
        super(channel, Framing.STREAM, hasStarted, stopReading);
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

    @Override
    int lingerSeconds() {
        return lingerSeconds;
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        Map<ChannelOption<?>, Object> options =
                getOptions(super.getOptions(), ChannelOption.ALLOW_HALF_CLOSURE, ChannelOption.SO_LINGER);
        options.putAll(tcp.values());
        return options;
    }

    @Override
    @SuppressWarnings("unchecked") // the option's type says what its value is
    public <T> T getOption(ChannelOption<T> option) {
        if (option.equals(ChannelOption.ALLOW_HALF_CLOSURE)) {
            return (T) Boolean.valueOf(allowHalfClosure);
        }
        if (option.equals(ChannelOption.SO_LINGER)) {
            return (T) Integer.valueOf(lingerSeconds);
        }
        T kept = tcp.get(option);
        return kept == null ? super.getOption(option) : kept;
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        validate(option, value);
        if (option.equals(ChannelOption.ALLOW_HALF_CLOSURE)) {
            allowHalfClosure = (Boolean) value;
            return true;
        }
        if (option.equals(ChannelOption.SO_LINGER)) {
            lingerSeconds = Math.max((Integer) value, -1);
            return true;
        }
        return tcp.set(option, value) || super.setOption(option, value);
    }

    // ---- the same by name

    private <T> SocketChannelConfig set(ChannelOption<T> option, T value) {
        setOption(option, value);
        return this;
    }

    @Override
    public boolean isAllowHalfClosure() {
        return allowHalfClosure;
    }

    @Override
    public SocketChannelConfig setAllowHalfClosure(boolean allowed) {
        return set(ChannelOption.ALLOW_HALF_CLOSURE, allowed);
    }

    @Override
    public boolean isTcpNoDelay() {
        return getOption(ChannelOption.TCP_NODELAY);
    }

    @Override
    public SocketChannelConfig setTcpNoDelay(boolean tcpNoDelay) {
        return set(ChannelOption.TCP_NODELAY, tcpNoDelay);
    }

    @Override
    public int getSoLinger() {
        return lingerSeconds;
    }

    @Override
    public SocketChannelConfig setSoLinger(int soLinger) {
        return set(ChannelOption.SO_LINGER, soLinger);
    }

    @Override
    public int getSendBufferSize() {
        return getOption(ChannelOption.SO_SNDBUF);
    }

    @Override
    public SocketChannelConfig setSendBufferSize(int sendBufferSize) {
        return set(ChannelOption.SO_SNDBUF, sendBufferSize);
    }

    @Override
    public int getReceiveBufferSize() {
        return getOption(ChannelOption.SO_RCVBUF);
    }

    @Override
    public SocketChannelConfig setReceiveBufferSize(int receiveBufferSize) {
        return set(ChannelOption.SO_RCVBUF, receiveBufferSize);
    }

    @Override
    public boolean isKeepAlive() {
        return getOption(ChannelOption.SO_KEEPALIVE);
    }

    @Override
    public SocketChannelConfig setKeepAlive(boolean keepAlive) {
        return set(ChannelOption.SO_KEEPALIVE, keepAlive);
    }

    @Override
    public int getTrafficClass() {
        return getOption(ChannelOption.IP_TOS);
    }

    @Override
    public SocketChannelConfig setTrafficClass(int trafficClass) {
        return set(ChannelOption.IP_TOS, trafficClass);
    }

    @Override
    public boolean isReuseAddress() {
        return getOption(ChannelOption.SO_REUSEADDR);
    }

    @Override
    public SocketChannelConfig setReuseAddress(boolean reuseAddress) {
        return set(ChannelOption.SO_REUSEADDR, reuseAddress);
    }

    /** Does nothing, as for the JDK's own sockets. */
    @Override
    public SocketChannelConfig setPerformancePreferences(int connectionTime, int latency, int bandwidth) {
        return this;
    }

    // ---- Netty's own, whose result is this type

    @Override
    public SocketChannelConfig setConnectTimeoutMillis(int connectTimeoutMillis) {
        super.setConnectTimeoutMillis(connectTimeoutMillis);
        return this;
    }

    @Override
    @Deprecated
    public SocketChannelConfig setMaxMessagesPerRead(int maxMessagesPerRead) {
        super.setMaxMessagesPerRead(maxMessagesPerRead);
        return this;
    }

    @Override
    public SocketChannelConfig setWriteSpinCount(int writeSpinCount) {
        super.setWriteSpinCount(writeSpinCount);
        return this;
    }

    @Override
    public SocketChannelConfig setAllocator(ByteBufAllocator allocator) {
        super.setAllocator(allocator);
        return this;
    }

    @Override
    public SocketChannelConfig setRecvByteBufAllocator(RecvByteBufAllocator allocator) {
        super.setRecvByteBufAllocator(allocator);
        return this;
    }

    @Override
    public SocketChannelConfig setAutoRead(boolean autoRead) {
        super.setAutoRead(autoRead);
        return this;
    }

    @Override
    public SocketChannelConfig setAutoClose(boolean autoClose) {
        super.setAutoClose(autoClose);
        return this;
    }

    @Override
    public SocketChannelConfig setMessageSizeEstimator(MessageSizeEstimator estimator) {
        super.setMessageSizeEstimator(estimator);
        return this;
    }

    @Override
    public SocketChannelConfig setWriteBufferWaterMark(WriteBufferWaterMark waterMark) {
        super.setWriteBufferWaterMark(waterMark);
        return this;
    }
}
