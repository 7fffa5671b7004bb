package org.verbena.transport.spi;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.QueuePairRoute;

/**
 * An implementation of RDMA: verbs, or iWARP in software. Found with {@link java.util.ServiceLoader}; one instance
 * serves the whole process. All methods may be called on any thread unless they say otherwise.
 *
 * <p>The seam is a reliable connection, as in libfabric's providers, not every verb: connect or accept gives an {@link
 * Endpoint} (one connected queue pair) whose work is posted in batches and whose completions come back to an {@link
 * EndpointHandler} on the event loop that owns the endpoint.
 */
public interface RdmaProvider {

    /**
     * The name that users select it by.
     *
     * @return {@code verbs}, {@code soft} ...
     */
    String name();

    /**
     * The order in which {@code auto} asks providers; the lowest that is available and serves the address wins.
     *
     * @return a rank; verbs has 100, soft 1000, shm 2000
     */
    int rank();

    /**
     * Why this provider cannot work here: a missing library, no device, no permission. Never throws; the message says
     * what to do.
     *
     * @return null if it can work
     */
    @Nullable Throwable unavailabilityCause();

    /**
     * Whether connections from or to this address should work: for verbs, whether a usable device serves it (a local
     * address) or the route to it (a remote one). A wildcard address is served if any device is up.
     *
     * @param address a resolved local or remote address
     * @return whether to expect success; false if the provider is unavailable
     */
    boolean serves(InetSocketAddress address);

    /**
     * Whether it is worth trying to connect to this address: for a provider that knows which servers there are, whether
     * there is one.
     *
     * @param remoteAddress the peer's, resolved
     * @return whether to expect success; {@link #serves} unless overridden
     */
    default boolean reaches(InetSocketAddress remoteAddress) {
        return serves(remoteAddress);
    }

    /**
     * Whether {@code auto} uses it beside the provider that it chooses: servers listen with it as well, and clients try
     * it first where it {@linkplain #reaches reaches} a server. So it has to know, without waiting, which servers there
     * are.
     *
     * @return false unless overridden
     */
    default boolean joinsAuto() {
        return false;
    }

    /**
     * The clock of its event loops.
     *
     * @return always the same; the system's unless overridden
     */
    default LoopClock clock() {
        return LoopClock.system();
    }

    /**
     * The devices that it runs on, for the log line that reports the choice.
     *
     * @return for example {@code rxe0 (RoCEv2), siw0 (iWARP)}
     */
    String description();

    /**
     * The totals of its completion loops, and the memory registered with it.
     *
     * @return a snapshot
     */
    ProviderCounters counters();

    /**
     * Makes the I/O handler of a completion loop; an event loop group made with this factory can be given to
     * {@link #connect}, {@link #listen} and {@link IncomingConnection#accept}. Netty's NIO channels may share its
     * loops.
     *
     * @param options how its loops poll and block
     * @return the factory, for Netty's {@code MultiThreadIoEventLoopGroup}
     */
    IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions options);

    /**
     * The number of scatter/gather elements per work request that suits a stream of many small buffers; they take room
     * in the queues.
     *
     * @return the value of {@link EndpointOptions#DEFAULTS} unless overridden
     */
    default int usualSges() {
        return EndpointOptions.DEFAULTS.maxSges();
    }

    /**
     * The default number of receives that a stream keeps posted; a device's queues have room for all of them from the
     * start.
     *
     * @return 16 unless overridden
     */
    default int usualStreamReceives() {
        return 16;
    }

    /**
     * Whether its listeners are TCP sockets that can take connections of other protocols: see {@link
     * ListenOptions#plainTcp()}.
     *
     * @return false unless overridden
     */
    default boolean takesPlainTcp() {
        return false;
    }

    /**
     * The limits of its servers for peers that have not introduced themselves completely. Listeners apply them until a
     * request is complete, and channels until the handshake is.
     *
     * @return {@link HandshakeLimits#DEFAULTS} unless overridden
     */
    default HandshakeLimits handshakeLimits() {
        return HandshakeLimits.DEFAULTS;
    }

    /**
     * Starts to connect. Returns immediately; the handler is called on the loop's thread with prepared and then
     * connected, or with disconnected and a {@link ConnectionException} that names address, step and reason. One
     * timeout covers all steps.
     *
     * @param loop an event loop of this provider; the endpoint's thread
     * @param remoteAddress the peer's address, resolved
     * @param options depths, limits, private data, timeout
     * @param handler receives the events of this endpoint
     * @return the endpoint, not connected yet; {@link Endpoint#disconnect()} gives up
     */
    Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler);

    /**
     * Whether it can connect queue pairs by hand: {@link #connectByHand}.
     *
     * @return false unless overridden
     */
    default boolean connectsByHand() {
        return false;
    }

    /**
     * Starts to connect a queue pair by hand: without a connection manager, to the peer's queue pair as the exchange
     * returns it. Returns immediately; the handler is called as with {@link #connect}. Nothing reports the end of the
     * peer, so {@link EndpointCapabilities#reportsPeerEnd()} is false: it shows when work fails.
     *
     * @param loop an event loop of this provider; the endpoint's thread
     * @param route the local end
     * @param exchange gets this end and returns the peer's; only for this connection
     * @param options depths, limits, retries, private data, timeout; it covers the exchange as well
     * @param handler receives the events of this endpoint
     * @return the endpoint, not connected yet; {@link Endpoint#disconnect()} gives up
     * @throws UnsupportedOperationException this provider has no queue pairs to connect by hand, see {@link
     *     #connectsByHand()}; nothing of the exchange was called
     */
    default Endpoint connectByHand(
            IoEventLoop loop,
            QueuePairRoute route,
            QueuePairExchange exchange,
            EndpointOptions options,
            EndpointHandler handler) {
        throw new UnsupportedOperationException("provider " + name()
                + " has no queue pairs that can be connected by hand: connect to an address, or use provider verbs and an"
                + " InfiniBand or RoCE device");
    }

    /**
     * Binds a local address for a connection that is made from it later.
     *
     * @param localAddress an address of this machine, resolved; port 0 selects any free port
     * @return the binding, to connect with or to close
     * @throws ConnectionException this machine does not have the address, or the port is in use
     */
    LocalBinding bind(InetSocketAddress localAddress);

    /**
     * Starts to listen. Returns immediately; {@link ListenerHandler#onListening} or {@link ListenerHandler#onClosed}
     * has the outcome.
     *
     * @param loop an event loop of this provider; the listener's thread
     * @param localAddress the address to listen at; port 0 selects any free port
     * @param options backlog, address reuse
     * @param handler receives connection requests
     * @return the listener, not listening yet
     */
    Listener listen(IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler);

    /**
     * Whether {@link #openDatagrams} can work here: a device with unreliable datagrams is up.
     *
     * @return false unless overridden
     */
    default boolean hasDatagrams() {
        return false;
    }

    /**
     * Starts to open a datagram endpoint. Returns immediately; {@link DatagramHandler#onOpened} or {@link
     * DatagramHandler#onClosed} has the outcome.
     *
     * @param loop an event loop of this provider; the endpoint's thread
     * @param localAddress the address that peers look up: one of a device, since a queue pair belongs to one. A
     *     wildcard takes the device on the route to {@code toward} or, without that, the only one with datagrams. Port
     *     0 selects any free port
     * @param toward where datagrams will go, null if that is not known
     * @param options depths and the like
     * @param handler receives the events of this endpoint
     * @return the endpoint, not open yet
     * @throws UnsupportedOperationException the provider has no datagrams
     */
    default DatagramEndpoint openDatagrams(
            IoEventLoop loop,
            InetSocketAddress localAddress,
            @Nullable InetSocketAddress toward,
            DatagramOptions options,
            DatagramHandler handler) {
        throw new UnsupportedOperationException("the RDMA provider " + name()
                + " has no datagrams, which need unreliable-datagram queue pairs: use the provider verbs on a RoCE or"
                + " InfiniBand device, or a UDP socket");
    }
}
