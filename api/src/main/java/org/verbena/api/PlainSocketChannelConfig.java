package org.verbena.api;

import io.netty.channel.ChannelOption;
import io.netty.channel.socket.SocketChannelConfig;
import java.util.Map;
import org.verbena.api.internal.option.TableConfig;

/**
 * The options of a plain connection: a socket's. A server's child options apply to both kinds of children, so those of
 * {@link RdmaChannelOption} are accepted and have no effect, except {@code PRE_SHARED_KEYS}: the connection is refused,
 * since plain TCP cannot prove a key. Any thread.
 */
final class PlainSocketChannelConfig extends TableConfig<SocketChannelConfig> implements SocketChannelConfig {
    private final Runnable onKeys;

    /**
     * Delegates to a socket's.
     *
     * @param socket the socket's own
     * @param onKeys called when the server's clients have to prove a pre-shared key, which plain TCP cannot do
     */
    PlainSocketChannelConfig(SocketChannelConfig socket, Runnable onKeys) {
        super(Map.of(), socket);
        this.onKeys = onKeys;
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        if (!RdmaChannelOption.isOneOf(option)) {
            return super.setOption(option, value);
        }
        option.validate(value);
        if (option.equals(RdmaChannelOption.PRE_SHARED_KEYS)) {
            onKeys.run();
        }
        return true;
    }
}
