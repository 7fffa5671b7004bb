package org.verbena.vertx;

import io.vertx.core.transport.Transport;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;

/**
 * RDMA as a transport of Vert.x 5. It replaces TCP by {@link RdmaSocketChannel} and {@link RdmaServerSocketChannel}:
 * HTTP servers and clients, WebSockets, {@code NetServer} and {@code NetClient}, and the connections between the nodes
 * of a clustered event bus. Both ends must use Verbena, unless clients connect by a ladder.
 *
 * <pre>{@code
 * Vertx vertx = Vertx.builder().withTransport(new RdmaTransport()).build();
 * }</pre>
 *
 * <p>UDP, with which Vert.x resolves names, and Unix domain sockets are those of the transport {@link Transport#NIO},
 * on the same event loops, which must support Netty's NIO channels. A DNS answer that is too long for UDP is used
 * truncated: Vert.x would repeat the query over this transport, which no name server supports.
 *
 * <p>Any thread; several instances of Vert.x may use one transport.
 */
public final class RdmaTransport implements Transport {
    private final RdmaImplementation implementation;

    /**
     * A transport of the configured provider ({@code -Dorg.verbena.provider}).
     *
     * @throws org.verbena.transport.ProviderUnavailableException it cannot work here
     */
    public RdmaTransport() {
        this(
                ProviderChoice.choose(ProviderChoice.configured(), null),
                ProviderChoice.configured().equals(ProviderSet.LADDER) ? LadderOptions.DEFAULTS : null,
                CompletionLoopOptions.DEFAULTS);
    }

    /**
     * A transport of a provider.
     *
     * @param choice the provider
     * @param options how the event loops poll and block
     */
    public RdmaTransport(ProviderChoice choice, CompletionLoopOptions options) {
        this(choice, null, options);
    }

    /**
     * A transport whose clients connect by a ladder, and whose servers listen with every provider that can serve, as
     * with the provider {@code ladder}.
     *
     * @param ladder what clients try, when, and what they need
     * @param options how the event loops poll and block
     */
    public RdmaTransport(LadderOptions ladder, CompletionLoopOptions options) {
        this(ProviderChoice.choose(ProviderSet.LADDER, null), ladder, options);
    }

    private RdmaTransport(ProviderChoice choice, @Nullable LadderOptions ladder, CompletionLoopOptions options) {
        implementation = new RdmaImplementation(choice, ladder, options);
    }

    /** Returns {@code rdma}. */
    @Override
    public String name() {
        return "rdma";
    }

    /** Returns true: if the provider cannot work, the constructor fails, because Vert.x would otherwise use TCP. */
    @Override
    public boolean available() {
        return true;
    }

    @Override
    public @Nullable Throwable unavailabilityCause() {
        return null;
    }

    @Override
    public io.vertx.core.spi.transport.Transport implementation() {
        return implementation;
    }
}
