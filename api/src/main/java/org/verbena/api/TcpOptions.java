package org.verbena.api;

import io.netty.channel.ChannelOption;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Options of TCP sockets that mean nothing to an RDMA connection, kept so that a program which sets one can read it
 * back: credits take the place of socket buffers, segments leave at each flush, and {@code KEEP_ALIVE_MILLIS} watches
 * the peer. Any thread.
 */
final class TcpOptions {
    private static final int BUFFER_BYTES = 64 << 10;

    private static final Map<ChannelOption<?>, Object> PRESETS = Map.of(
            ChannelOption.SO_KEEPALIVE,
            false,
            ChannelOption.SO_RCVBUF,
            BUFFER_BYTES,
            ChannelOption.SO_REUSEADDR,
            false,
            ChannelOption.SO_SNDBUF,
            BUFFER_BYTES,
            ChannelOption.SO_TIMEOUT,
            0,
            ChannelOption.TCP_FASTOPEN,
            0,
            ChannelOption.TCP_FASTOPEN_CONNECT,
            false,
            ChannelOption.TCP_NODELAY,
            true);

    /** What was set, for most channels nothing. Never changed but replaced, under the lock. */
    private volatile Map<ChannelOption<?>, Object> changed = Map.of();

    /** All of them, with what they are set to. */
    Map<ChannelOption<?>, Object> values() {
        Map<ChannelOption<?>, Object> values = new HashMap<>(PRESETS);
        values.putAll(changed);
        return values;
    }

    /** What one is set to, or null if it is none of these. */
    @SuppressWarnings("unchecked") // only set() changes a value
    <T> @Nullable T get(ChannelOption<T> option) {
        Object value = changed.get(option);
        return (T) (value == null ? PRESETS.get(option) : value);
    }

    /**
     * Keeps a value.
     *
     * @return false if the option is none of these
     * @throws IllegalArgumentException a buffer without bytes
     */
    synchronized <T> boolean set(ChannelOption<T> option, T value) {
        if (!PRESETS.containsKey(option)) {
            return false;
        }
        boolean buffer = option.equals(ChannelOption.SO_RCVBUF) || option.equals(ChannelOption.SO_SNDBUF);
        if (buffer && (Integer) value < 1) {
            throw new IllegalArgumentException(option + " " + value + " is not positive");
        }
        Map<ChannelOption<?>, Object> next = new HashMap<>(changed);
        next.put(option, value);
        changed = next;
        return true;
    }
}
