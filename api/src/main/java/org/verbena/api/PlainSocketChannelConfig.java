package org.verbena.api;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelOption;
import io.netty.channel.MessageSizeEstimator;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.socket.SocketChannelConfig;
import java.util.Map;

/**
 * The options of a plain connection: a socket's. A server's child options are for both kinds of children, so those of
 * {@link RdmaChannelOption} are taken and have no effect, but one: a child that needs a key is none of these. Any thread.
 */
final class PlainSocketChannelConfig implements SocketChannelConfig {
    private final SocketChannelConfig socket;
    private final Runnable onKeys;

    /**
     * Delegates to a socket's.
     *
     * @param socket the socket's own
     * @param onKeys called when the server's clients have to prove a pre-shared key, which plain TCP cannot do
     */
    PlainSocketChannelConfig(SocketChannelConfig socket, Runnable onKeys) {
        this.socket = socket;
        this.onKeys = onKeys;
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        return socket.getOptions();
    }

    @Override
    @SuppressWarnings("unchecked") // each option's type says what its value is
    public boolean setOptions(Map<ChannelOption<?>, ?> options) {
        boolean known = true;
        for (Map.Entry<ChannelOption<?>, ?> entry : options.entrySet()) {
            known &= setOption((ChannelOption<Object>) entry.getKey(), entry.getValue());
        }
        return known;
    }

    @Override
    public <T> T getOption(ChannelOption<T> option) {
        return socket.getOption(option);
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        if (RdmaChannelOption.isOneOf(option)) {
            option.validate(value);
            if (option.equals(RdmaChannelOption.PRE_SHARED_KEYS)) {
                onKeys.run();
            }
            return true;
        }
        return socket.setOption(option, value);
    }

    // ---- the socket's own

    @Override
    public boolean isTcpNoDelay() {
        return socket.isTcpNoDelay();
    }

    @Override
    public SocketChannelConfig setTcpNoDelay(boolean tcpNoDelay) {
        socket.setTcpNoDelay(tcpNoDelay);
        return this;
    }

    @Override
    public int getSoLinger() {
        return socket.getSoLinger();
    }

    @Override
    public SocketChannelConfig setSoLinger(int soLinger) {
        socket.setSoLinger(soLinger);
        return this;
    }

    @Override
    public int getSendBufferSize() {
        return socket.getSendBufferSize();
    }

    @Override
    public SocketChannelConfig setSendBufferSize(int sendBufferSize) {
        socket.setSendBufferSize(sendBufferSize);
        return this;
    }

    @Override
    public int getReceiveBufferSize() {
        return socket.getReceiveBufferSize();
    }

    @Override
    public SocketChannelConfig setReceiveBufferSize(int receiveBufferSize) {
        socket.setReceiveBufferSize(receiveBufferSize);
        return this;
    }

    @Override
    public boolean isKeepAlive() {
        return socket.isKeepAlive();
    }

    @Override
    public SocketChannelConfig setKeepAlive(boolean keepAlive) {
        socket.setKeepAlive(keepAlive);
        return this;
    }

    @Override
    public int getTrafficClass() {
        return socket.getTrafficClass();
    }

    @Override
    public SocketChannelConfig setTrafficClass(int trafficClass) {
        socket.setTrafficClass(trafficClass);
        return this;
    }

    @Override
    public boolean isReuseAddress() {
        return socket.isReuseAddress();
    }

    @Override
    public SocketChannelConfig setReuseAddress(boolean reuseAddress) {
        socket.setReuseAddress(reuseAddress);
        return this;
    }

    @Override
    public SocketChannelConfig setPerformancePreferences(int connectionTime, int latency, int bandwidth) {
        socket.setPerformancePreferences(connectionTime, latency, bandwidth);
        return this;
    }

    @Override
    public boolean isAllowHalfClosure() {
        return socket.isAllowHalfClosure();
    }

    @Override
    public SocketChannelConfig setAllowHalfClosure(boolean allowHalfClosure) {
        socket.setAllowHalfClosure(allowHalfClosure);
        return this;
    }

    // ---- every channel's

    @Override
    public int getConnectTimeoutMillis() {
        return socket.getConnectTimeoutMillis();
    }

    @Override
    public SocketChannelConfig setConnectTimeoutMillis(int connectTimeoutMillis) {
        socket.setConnectTimeoutMillis(connectTimeoutMillis);
        return this;
    }

    @Override
    @Deprecated
    public int getMaxMessagesPerRead() {
        return socket.getMaxMessagesPerRead();
    }

    @Override
    @Deprecated
    public SocketChannelConfig setMaxMessagesPerRead(int maxMessagesPerRead) {
        socket.setMaxMessagesPerRead(maxMessagesPerRead);
        return this;
    }

    @Override
    public int getWriteSpinCount() {
        return socket.getWriteSpinCount();
    }

    @Override
    public SocketChannelConfig setWriteSpinCount(int writeSpinCount) {
        socket.setWriteSpinCount(writeSpinCount);
        return this;
    }

    @Override
    public ByteBufAllocator getAllocator() {
        return socket.getAllocator();
    }

    @Override
    public SocketChannelConfig setAllocator(ByteBufAllocator allocator) {
        socket.setAllocator(allocator);
        return this;
    }

    @Override
    @SuppressWarnings("TypeParameterUnusedInFormals") // the interface asks for it
    public <T extends RecvByteBufAllocator> T getRecvByteBufAllocator() {
        return socket.getRecvByteBufAllocator();
    }

    @Override
    public SocketChannelConfig setRecvByteBufAllocator(RecvByteBufAllocator allocator) {
        socket.setRecvByteBufAllocator(allocator);
        return this;
    }

    @Override
    public boolean isAutoRead() {
        return socket.isAutoRead();
    }

    @Override
    public SocketChannelConfig setAutoRead(boolean autoRead) {
        socket.setAutoRead(autoRead);
        return this;
    }

    @Override
    public boolean isAutoClose() {
        return socket.isAutoClose();
    }

    @Override
    public SocketChannelConfig setAutoClose(boolean autoClose) {
        socket.setAutoClose(autoClose);
        return this;
    }

    @Override
    public int getWriteBufferHighWaterMark() {
        return socket.getWriteBufferHighWaterMark();
    }

    @Override
    public SocketChannelConfig setWriteBufferHighWaterMark(int writeBufferHighWaterMark) {
        socket.setWriteBufferHighWaterMark(writeBufferHighWaterMark);
        return this;
    }

    @Override
    public int getWriteBufferLowWaterMark() {
        return socket.getWriteBufferLowWaterMark();
    }

    @Override
    public SocketChannelConfig setWriteBufferLowWaterMark(int writeBufferLowWaterMark) {
        socket.setWriteBufferLowWaterMark(writeBufferLowWaterMark);
        return this;
    }

    @Override
    public MessageSizeEstimator getMessageSizeEstimator() {
        return socket.getMessageSizeEstimator();
    }

    @Override
    public SocketChannelConfig setMessageSizeEstimator(MessageSizeEstimator estimator) {
        socket.setMessageSizeEstimator(estimator);
        return this;
    }

    @Override
    public WriteBufferWaterMark getWriteBufferWaterMark() {
        return socket.getWriteBufferWaterMark();
    }

    @Override
    public SocketChannelConfig setWriteBufferWaterMark(WriteBufferWaterMark writeBufferWaterMark) {
        socket.setWriteBufferWaterMark(writeBufferWaterMark);
        return this;
    }
}
