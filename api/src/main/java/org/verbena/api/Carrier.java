package org.verbena.api;

import io.netty.channel.Channel;
import io.netty.util.AttributeKey;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.ladder.LadderConnect;

/**
 * What carries a connection, and why. Every {@link RdmaChannel} and {@link RdmaSocketChannel} has it as an attribute
 * once it connects, and every connection that a server accepts has it before its child handler is called. So do plain
 * TCP connections of an {@link RdmaServerSocketChannel} and of {@link RdmaLadder}.
 *
 * <pre>{@code
 * Carrier carrier = Carrier.of(channel);
 * log.info("{} over {}: {}", channel.remoteAddress(), carrier.name(), carrier.reason());
 * }</pre>
 *
 * @param name {@code verbs}, {@code soft} ..., or {@link #TCP}
 * @param reason why this one was chosen, as a phrase
 */
public record Carrier(String name, String reason) {

    /** The name of plain TCP, where no provider carries the connection. */
    public static final String TCP = LadderConnect.TCP;

    /** The attribute of channels, {@code verbena.provider}. */
    public static final AttributeKey<Carrier> ATTRIBUTE = AttributeKey.valueOf("verbena.provider");

    /**
     * Returns what carries a channel. Any thread.
     *
     * @param channel any channel
     * @return null for a channel that has not begun to connect, or of another kind
     */
    public static @Nullable Carrier of(Channel channel) {
        return channel.attr(ATTRIBUTE).get();
    }
}
