package org.verbena.api.internal.channel;

import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;

/**
 * The exchange of the end that answers: it refuses a peer that speaks another protocol, as a server refuses a connect
 * request. The end that begins makes its own check.
 *
 * @param exchange the program's
 * @param options of this end
 * @param keys that this end accepts; null if it requires none
 */
public record CheckedExchange(
        QueuePairExchange exchange,
        MessageOptions options,
        @Nullable PreSharedKeys keys) implements QueuePairExchange {
    private static final Logger LOG = LoggerFactory.getLogger(CheckedExchange.class);

    /** The exchange; where this end answers, with a server's checks of its peer. */
    public static QueuePairExchange of(
            QueuePairExchange exchange, MessageOptions options, @Nullable PreSharedKeys keys) {
        return exchange.answers() ? new CheckedExchange(exchange, options, keys) : exchange;
    }

    /** This end's role in the handshake of messages. */
    public static Role roleOf(QueuePairExchange exchange) {
        return exchange.answers() ? Role.ACCEPTOR : Role.INITIATOR;
    }

    /** Gives an exchange up that no provider has taken. */
    public static void giveUp(QueuePairExchange exchange) {
        try {
            exchange.giveUp();
        } catch (RuntimeException thrown) {
            LOG.warn("giveUp of {} threw", exchange, thrown);
        }
    }

    @Override
    public QueuePairEnd adapt(QueuePairEnd proposed) {
        return exchange.adapt(proposed);
    }

    @Override
    public CompletionStage<QueuePairEnd> exchange(QueuePairEnd own, MemoryDomain memory) {
        return exchange.exchange(own, memory).thenApply(peer -> {
            byte[] rejection = PrivateData.rejection(options, keys, peer.privateData());
            if (rejection != null) {
                throw new ConnectionException(
                        "the peer of the exchange " + exchange + " was refused: " + PrivateData.reason(rejection));
            }
            return peer;
        });
    }

    @Override
    public CompletionStage<Void> ready() {
        return exchange.ready();
    }

    @Override
    public void giveUp() {
        exchange.giveUp();
    }

    @Override
    public boolean answers() {
        return exchange.answers();
    }
}
