package org.verbena.api.queuepair;

import java.io.Serial;
import java.net.SocketAddress;
import java.util.Objects;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.QueuePairRoute;

/**
 * The peer of a channel that is connected by hand, without rdma_cm: pass it to a {@code Bootstrap}'s {@code connect}.
 * Both ends connect, each with an exchange of its own that communicates with the other's.
 *
 * <pre>{@code
 * TcpQueuePairExchange exchange = TcpQueuePairExchange.connecting(new InetSocketAddress("host", 18515));
 * bootstrap.connect(new QueuePairExchangeAddress(QueuePairRoute.ofDevice("rxe0"), exchange));
 * }</pre>
 *
 * <p>It can be used for one connect. Providers such as soft, whose queue pairs cannot be connected by hand, refuse it,
 * and so do iWARP devices.
 */
public final class QueuePairExchangeAddress extends SocketAddress {
    @Serial
    private static final long serialVersionUID = 1L;

    private final transient QueuePairRoute route;
    private final transient QueuePairExchange exchange;

    /**
     * Creates an address.
     *
     * @param route the local end
     * @param exchange communicates with the peer's; none of its methods is called before the channel connects
     */
    public QueuePairExchangeAddress(QueuePairRoute route, QueuePairExchange exchange) {
        this.route = Objects.requireNonNull(route, "the route is null");
        this.exchange = Objects.requireNonNull(exchange, "the exchange is null");
    }

    /**
     * The local end.
     *
     * @return device, port and GID, or an address
     */
    public QueuePairRoute route() {
        return route;
    }

    /**
     * The exchange.
     *
     * @return as it was given
     */
    public QueuePairExchange exchange() {
        return exchange;
    }

    @Override
    public String toString() {
        return "a queue pair by hand on " + route + ", by " + exchange;
    }
}
