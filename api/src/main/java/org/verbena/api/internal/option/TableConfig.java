package org.verbena.api.internal.option;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOption;
import io.netty.channel.DefaultChannelConfig;
import io.netty.channel.MessageSizeEstimator;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.WriteBufferWaterMark;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The options of a channel, by a table for its kind; a config of Netty has the options without a row. Getters and
 * setters by name are here once for all kinds, and have the same effect as getting and setting the option. Any thread.
 *
 * @param <C> the interface of Netty's that the subclass implements, which setters return
 */
@SuppressWarnings("deprecation") // Netty's old names, which a program may still use
public abstract class TableConfig<C extends ChannelConfig> implements ChannelConfig {
    /** What every table has. */
    public static final Map<ChannelOption<?>, OptionRow<?>> ROWS = OptionRow.table(
            Map.of(),
            new OptionRow<>(
                    ChannelOption.ALLOCATOR,
                    TableConfig::getAllocator,
                    (config, allocator) -> {
                        config.setAllocator(allocator);
                        return true;
                    },
                    true));

    private final Map<ChannelOption<?>, OptionRow<?>> table;
    private final ChannelConfig rest;

    /** The values that were set; other options have their defaults. */
    private final Map<ChannelOption<?>, Object> values = new ConcurrentHashMap<>();

    // Written by any thread before the connection is made, by the loop when it is; read by any.
    private volatile @Nullable ByteBufAllocator chosenAllocator;
    private volatile @Nullable ByteBufAllocator registeredAllocator;

    /**
     * Creates the options of a channel.
     *
     * @param table its rows, by option
     * @param rest has all other options
     */
    public TableConfig(Map<ChannelOption<?>, OptionRow<?>> table, ChannelConfig rest) {
        this.table = table;
        this.rest = rest;
    }

    /**
     * Creates the config of Netty's own options.
     *
     * @param channel the channel
     * @param stopReading called when auto-read is switched off
     */
    public static ChannelConfig ofNetty(Channel channel, Runnable stopReading) {
        return new DefaultChannelConfig(channel) {
            @Override
            protected void autoReadCleared() {
                stopReading.run();
            }
        };
    }

    /** Whether the connection has been made, and its options read. */
    protected boolean hasStarted() {
        return false;
    }

    /** What was set, or null. */
    @SuppressWarnings("unchecked") // only keep() changes a value
    public final <T> @Nullable T kept(ChannelOption<T> option) {
        return (T) values.get(option);
    }

    public final <T> void keep(ChannelOption<T> option, T value) {
        values.put(option, value);
    }

    /** An option that has a value. */
    public final <T> T get(ChannelOption<T> option) {
        return Objects.requireNonNull(getOption(option), option.name());
    }

    // ---- the allocator

    /** The allocator that the program has set; null if it has set none. */
    public final @Nullable ByteBufAllocator chosenAllocator() {
        return chosenAllocator;
    }

    /** The device is known now: a channel without a chosen allocator allocates its registered memory. */
    public final void registeredAllocator(ByteBufAllocator allocator) {
        registeredAllocator = allocator;
    }

    /** Whether registered memory takes precedence over the allocator that the program has set. */
    protected boolean prefersRegistered() {
        return false;
    }

    @Override
    public ByteBufAllocator getAllocator() {
        ByteBufAllocator registered = registeredAllocator;
        return registered != null && (chosenAllocator == null || prefersRegistered())
                ? registered
                : rest.getAllocator();
    }

    @Override
    public C setAllocator(ByteBufAllocator allocator) {
        rest.setAllocator(allocator);
        chosenAllocator = allocator;
        return self();
    }

    // ---- options

    @SuppressWarnings("unchecked") // a table has each option's row under that option
    private <T> @Nullable OptionRow<T> row(ChannelOption<T> option) {
        return (OptionRow<T>) table.get(option);
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        Map<ChannelOption<?>, Object> options = rest.getOptions();
        for (OptionRow<?> row : table.values()) {
            if (row.isListed()) {
                options.put(row.option(), row.getter().apply(this));
            }
        }
        return options;
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
    public <T> @Nullable T getOption(ChannelOption<T> option) {
        OptionRow<T> row = row(option);
        return row == null ? rest.getOption(option) : row.getter().apply(this);
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        OptionRow<T> row = row(option);
        if (row == null) {
            return rest.setOption(option, value);
        }
        option.validate(value);
        return row.setter().set(this, value);
    }

    @SuppressWarnings("unchecked") // C is an interface of the subclass
    private C self() {
        return (C) this;
    }

    private <T> C set(ChannelOption<T> option, T value) {
        setOption(option, value);
        return self();
    }

    // ---- by name: every channel's

    @Override
    public int getConnectTimeoutMillis() {
        return rest.getConnectTimeoutMillis();
    }

    @Override
    public C setConnectTimeoutMillis(int millis) {
        return set(ChannelOption.CONNECT_TIMEOUT_MILLIS, millis);
    }

    @Override
    @Deprecated
    public int getMaxMessagesPerRead() {
        return rest.getMaxMessagesPerRead();
    }

    @Override
    @Deprecated
    public C setMaxMessagesPerRead(int messages) {
        return set(ChannelOption.MAX_MESSAGES_PER_READ, messages);
    }

    @Override
    public int getWriteSpinCount() {
        return rest.getWriteSpinCount();
    }

    @Override
    public C setWriteSpinCount(int count) {
        return set(ChannelOption.WRITE_SPIN_COUNT, count);
    }

    @Override
    @SuppressWarnings("TypeParameterUnusedInFormals") // the interface asks for it
    public <A extends RecvByteBufAllocator> A getRecvByteBufAllocator() {
        return rest.getRecvByteBufAllocator();
    }

    @Override
    public C setRecvByteBufAllocator(RecvByteBufAllocator allocator) {
        return set(ChannelOption.RECVBUF_ALLOCATOR, allocator);
    }

    @Override
    public boolean isAutoRead() {
        return rest.isAutoRead();
    }

    @Override
    public C setAutoRead(boolean autoRead) {
        return set(ChannelOption.AUTO_READ, autoRead);
    }

    @Override
    public boolean isAutoClose() {
        return rest.isAutoClose();
    }

    @Override
    public C setAutoClose(boolean autoClose) {
        return set(ChannelOption.AUTO_CLOSE, autoClose);
    }

    @Override
    public int getWriteBufferHighWaterMark() {
        return rest.getWriteBufferHighWaterMark();
    }

    @Override
    public C setWriteBufferHighWaterMark(int bytes) {
        return set(ChannelOption.WRITE_BUFFER_HIGH_WATER_MARK, bytes);
    }

    @Override
    public int getWriteBufferLowWaterMark() {
        return rest.getWriteBufferLowWaterMark();
    }

    @Override
    public C setWriteBufferLowWaterMark(int bytes) {
        return set(ChannelOption.WRITE_BUFFER_LOW_WATER_MARK, bytes);
    }

    @Override
    public MessageSizeEstimator getMessageSizeEstimator() {
        return rest.getMessageSizeEstimator();
    }

    @Override
    public C setMessageSizeEstimator(MessageSizeEstimator estimator) {
        return set(ChannelOption.MESSAGE_SIZE_ESTIMATOR, estimator);
    }

    @Override
    public WriteBufferWaterMark getWriteBufferWaterMark() {
        return rest.getWriteBufferWaterMark();
    }

    @Override
    public C setWriteBufferWaterMark(WriteBufferWaterMark waterMark) {
        return set(ChannelOption.WRITE_BUFFER_WATER_MARK, waterMark);
    }

    // ---- by name: a socket's, a server socket's and a datagram channel's

    public boolean isAllowHalfClosure() {
        return get(ChannelOption.ALLOW_HALF_CLOSURE);
    }

    public C setAllowHalfClosure(boolean allowed) {
        return set(ChannelOption.ALLOW_HALF_CLOSURE, allowed);
    }

    public boolean isTcpNoDelay() {
        return get(ChannelOption.TCP_NODELAY);
    }

    public C setTcpNoDelay(boolean noDelay) {
        return set(ChannelOption.TCP_NODELAY, noDelay);
    }

    public int getSoLinger() {
        return get(ChannelOption.SO_LINGER);
    }

    public C setSoLinger(int seconds) {
        return set(ChannelOption.SO_LINGER, seconds);
    }

    public int getSendBufferSize() {
        return get(ChannelOption.SO_SNDBUF);
    }

    public C setSendBufferSize(int bytes) {
        return set(ChannelOption.SO_SNDBUF, bytes);
    }

    public int getReceiveBufferSize() {
        return get(ChannelOption.SO_RCVBUF);
    }

    public C setReceiveBufferSize(int bytes) {
        return set(ChannelOption.SO_RCVBUF, bytes);
    }

    public boolean isKeepAlive() {
        return get(ChannelOption.SO_KEEPALIVE);
    }

    public C setKeepAlive(boolean keepAlive) {
        return set(ChannelOption.SO_KEEPALIVE, keepAlive);
    }

    public int getTrafficClass() {
        return get(ChannelOption.IP_TOS);
    }

    public C setTrafficClass(int trafficClass) {
        return set(ChannelOption.IP_TOS, trafficClass);
    }

    public boolean isReuseAddress() {
        return get(ChannelOption.SO_REUSEADDR);
    }

    public C setReuseAddress(boolean reuseAddress) {
        return set(ChannelOption.SO_REUSEADDR, reuseAddress);
    }

    public int getBacklog() {
        return get(ChannelOption.SO_BACKLOG);
    }

    public C setBacklog(int backlog) {
        return set(ChannelOption.SO_BACKLOG, backlog);
    }

    /** Does nothing, as for the JDK's own sockets. */
    public C setPerformancePreferences(int connectionTime, int latency, int bandwidth) {
        return self();
    }
}
