package org.verbena.api;

import io.netty.channel.ChannelOption;
import io.netty.channel.socket.SocketChannelConfig;
import java.util.Map;
import org.verbena.api.internal.option.TableConfig;

/**
 * The options of a plain connection: a socket's. A server's child options are for both kinds of children, so those of
 * {@link RdmaChannelOption} are taken and have no effect, but one: a child that needs a key is none of these. Any
 * thread.
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
