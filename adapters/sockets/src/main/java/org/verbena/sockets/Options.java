package org.verbena.sockets;

import io.netty.channel.ChannelOption;
import java.net.SocketException;
import java.net.SocketOption;
import java.net.SocketOptions;
import java.net.StandardSocketOptions;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The options of sockets, in the JDK's old form, in its new one, and as Netty has them. */
final class Options {
    static final Set<SocketOption<?>> OF_SERVERS =
            Set.of(StandardSocketOptions.SO_RCVBUF, StandardSocketOptions.SO_REUSEADDR);

    private static final Map<Integer, SocketOption<?>> BY_ID = Map.of(
            SocketOptions.IP_TOS, StandardSocketOptions.IP_TOS,
            SocketOptions.SO_KEEPALIVE, StandardSocketOptions.SO_KEEPALIVE,
            SocketOptions.SO_LINGER, StandardSocketOptions.SO_LINGER,
            SocketOptions.SO_RCVBUF, StandardSocketOptions.SO_RCVBUF,
            SocketOptions.SO_REUSEADDR, StandardSocketOptions.SO_REUSEADDR,
            SocketOptions.SO_SNDBUF, StandardSocketOptions.SO_SNDBUF,
            SocketOptions.TCP_NODELAY, StandardSocketOptions.TCP_NODELAY);

    private static final Map<SocketOption<?>, ChannelOption<?>> OF_CHANNELS = Map.of(
            StandardSocketOptions.IP_TOS, ChannelOption.IP_TOS,
            StandardSocketOptions.SO_KEEPALIVE, ChannelOption.SO_KEEPALIVE,
            StandardSocketOptions.SO_LINGER, ChannelOption.SO_LINGER,
            StandardSocketOptions.SO_RCVBUF, ChannelOption.SO_RCVBUF,
            StandardSocketOptions.SO_REUSEADDR, ChannelOption.SO_REUSEADDR,
            StandardSocketOptions.SO_SNDBUF, ChannelOption.SO_SNDBUF,
            StandardSocketOptions.TCP_NODELAY, ChannelOption.TCP_NODELAY);

    static final Set<SocketOption<?>> OF_SOCKETS = OF_CHANNELS.keySet();

    private Options() {}

    /** The option of an old number; null if it is none of these. */
    static @Nullable SocketOption<?> of(int id) {
        return BY_ID.get(id);
    }

    /** The option that a channel has for one of {@link #OF_SOCKETS}. */
    @SuppressWarnings({"unchecked", "NullAway"}) // the two have values of the same type; callers check that it is one
    static ChannelOption<Object> ofChannel(SocketOption<?> name) {
        return (ChannelOption<Object>) OF_CHANNELS.get(name);
    }

    /**
     * Checks an option and a value for it.
     *
     * @throws UnsupportedOperationException sockets of this kind do not have it
     * @throws IllegalArgumentException the value is of another type
     */
    static void check(Set<SocketOption<?>> supported, SocketOption<?> name, @Nullable Object value) {
        checkSupported(supported, name);
        if (!name.type().isInstance(value)) {
            throw new IllegalArgumentException("Invalid value '" + value + "' for " + name);
        }
    }

    static void checkSupported(Set<SocketOption<?>> supported, SocketOption<?> name) {
        if (!supported.contains(name)) {
            throw new UnsupportedOperationException("'" + name + "' not supported");
        }
    }

    static int millis(Object value) throws SocketException {
        if (value instanceof Integer millis && millis >= 0) {
            return millis;
        }
        throw new SocketException("Bad value for SO_TIMEOUT: " + value);
    }
}
