package org.verbena.api;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOption;
import io.netty.channel.RecvByteBufAllocator;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The options of a {@link LadderSocketChannel}: those of an {@link RdmaSocketChannel}, and {@link RdmaChannelOption#LADDER}.
 * What is set goes to the channels of the rungs as well, but for what is of this channel's pipeline alone. Any thread.
 */
final class LadderSocketChannelConfig extends RdmaSocketChannelConfig {

    /** Reading is asked for by this channel; the memory to read into is asked for through {@link #getRecvByteBufAllocator()}. */
    @SuppressWarnings("deprecation") // Netty's old name of an option that a program may still set
    private static final Set<ChannelOption<?>> OWN = Set.of(
            RdmaChannelOption.LADDER,
            ChannelOption.AUTO_READ,
            ChannelOption.CONNECT_TIMEOUT_MILLIS,
            ChannelOption.MAX_MESSAGES_PER_READ,
            ChannelOption.RECVBUF_ALLOCATOR);

    /** What was set and is for the rungs too. */
    private final Map<ChannelOption<?>, Object> chosen = new ConcurrentHashMap<>();

    private final BooleanSupplier isClimbing;

    // Written by any thread before it connects.
    private volatile @Nullable LadderOptions ladder;

    /** Of the channel in use; null until there is one. Written by the loop, read by any thread. */
    private volatile @Nullable ChannelConfig rung;

    LadderSocketChannelConfig(LadderSocketChannel channel) {
        super(channel, channel::hasStarted, channel::stopReading);
        isClimbing = channel::hasStarted;
    }

    /** Null if it is not set. */
    @Nullable LadderOptions ladder() {
        return ladder;
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

    /** A rung is used from now on, and gets what was set since it began. */
    void use(ChannelConfig used) {
        rung = used;
        for (Map.Entry<ChannelOption<?>, Object> entry : chosen.entrySet()) {
            if (!RdmaChannelOption.isOneOf(entry.getKey())) {
                used.setOption(ShortForm.untyped(entry.getKey()), entry.getValue());
            }
        }
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        return getOptions(super.getOptions(), RdmaChannelOption.LADDER);
    }

    @Override
    @SuppressWarnings({"unchecked", "NullAway"}) // the option's type says what its value is; Netty gives null for none
    public <T> T getOption(ChannelOption<T> option) {
        return option.equals(RdmaChannelOption.LADDER) ? (T) ladder : super.getOption(option);
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        if (option.equals(RdmaChannelOption.LADDER)) {
            validate(option, value);
            if (isClimbing.getAsBoolean()) {
                throw new IllegalStateException(option + " is read when the channel connects: set it on the bootstrap");
            }
            ladder = (LadderOptions) Objects.requireNonNull(value);
            return true;
        }
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

    /** What a rung of plain TCP reads into: this channel's, as long as this channel wants to read. */
    RecvByteBufAllocator forReads() {
        return () -> new LadderReads(this.getRecvByteBufAllocator().newHandle(), this);
    }
}
