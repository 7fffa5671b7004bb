package org.verbena.api;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOption;
import io.netty.channel.RecvByteBufAllocator;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.ladder.LadderReads;
import org.verbena.api.internal.option.OptionRow;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.ladder.LadderOptions;

/**
 * The options of a {@link LadderSocketChannel}: those of an {@link RdmaSocketChannel}, and {@link
 * RdmaChannelOption#LADDER}. Options that are set apply to the channels of the rungs as well, except those that concern
 * only this channel's pipeline. Any thread.
 */
final class LadderSocketChannelConfig extends RdmaSocketChannelConfig {

    private static final Map<ChannelOption<?>, OptionRow<?>> ROWS = OptionRow.table(
            STREAM_ROWS,
            OptionRow.<LadderOptions>kept(RdmaChannelOption.LADDER, null).untilStarted());

    /**
     * Options of this channel only: it decides when to read, and through {@link #getRecvByteBufAllocator()} where to.
     */
    @SuppressWarnings("deprecation") // Netty's old name of an option that a program may still set
    private static final Set<ChannelOption<?>> OWN = Set.of(
            RdmaChannelOption.LADDER,
            ChannelOption.AUTO_READ,
            ChannelOption.CONNECT_TIMEOUT_MILLIS,
            ChannelOption.MAX_MESSAGES_PER_READ,
            ChannelOption.RECVBUF_ALLOCATOR);

    /** Options that were set and apply to the rungs too. */
    private final Map<ChannelOption<?>, Object> chosen = new ConcurrentHashMap<>();

    /** The configuration of the channel in use; null until there is one. Written by the loop, read by any thread. */
    private volatile @Nullable ChannelConfig rung;

    LadderSocketChannelConfig(LadderSocketChannel channel) {
        super(ROWS, channel, channel::hasStarted, channel::stopReading);
    }

    /** Null if it is not set. */
    @Nullable LadderOptions ladder() {
        return getOption(RdmaChannelOption.LADDER);
    }

    /** What the channels of the rungs are made with. */
    Map<ChannelOption<?>, Object> forRungs() {
        Map<ChannelOption<?>, Object> options = new HashMap<>(chosen);
        options.put(ChannelOption.AUTO_READ, false);
        options.put(ChannelOption.CONNECT_TIMEOUT_MILLIS, getConnectTimeoutMillis());
        ByteBufAllocator allocator = chosenAllocator();
        if (allocator != null) {
            options.put(ChannelOption.ALLOCATOR, allocator);
        }
        return options;
    }

    /** A rung is used from now on, and gets the options that were set since it began to connect. */
    void use(ChannelConfig used) {
        rung = used;
        for (Map.Entry<ChannelOption<?>, Object> entry : chosen.entrySet()) {
            if (!RdmaChannelOption.isOneOf(entry.getKey())) {
                used.setOption(ShortForm.untyped(entry.getKey()), entry.getValue());
            }
        }
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        if (!super.setOption(option, value)) {
            return false;
        }
        if (!OWN.contains(option)) {
            chosen.put(option, value);
            ChannelConfig used = rung;
            if (used != null) {
                used.setOption(option, value);
            }
        }
        return true;
    }

    /** The receive allocator of a rung of plain TCP: this channel's, as long as this channel wants to read. */
    RecvByteBufAllocator forReads() {
        return () -> new LadderReads(this.getRecvByteBufAllocator().newHandle(), this);
    }
}
