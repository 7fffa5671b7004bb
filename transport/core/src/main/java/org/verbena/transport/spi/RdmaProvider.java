package org.verbena.transport.spi;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;

/**
 * A way to do RDMA: real verbs, or iWARP in software. Found with {@link java.util.ServiceLoader}; one instance serves the
 * whole process. All methods may be called on any thread unless they say otherwise.
 *
 * <p>The seam is a reliable connection, as in libfabric's providers, not every verb: connect or accept gives an
 * {@link Endpoint} (one connected queue pair) whose work is posted in batches and whose completions come back to an
 * {@link EndpointHandler} on the event loop that owns the endpoint.
 */
public interface RdmaProvider {

    /**
     * The name users choose it by.
     *
     * @return {@code verbs}, {@code soft} ...
     */
    String name();

    /**
     * The order in which {@code auto} asks providers; the lowest available one that serves wins.
     *
     * @return a rank; verbs has 100, soft 1000
     */
    int rank();

    /**
     * Why this provider cannot work here: a missing library, no device, no permission. An answer, never a crash, and its
     * message says what to do.
     *
     * @return null if it can work
     */
    @Nullable Throwable unavailabilityCause();

    /**
     * Whether connections from or to this address would work: for verbs, whether a device that is up serves it (a local
     * address) or the route to it (a remote one). A wildcard address is served if any device is up.
     *
     * @param address a resolved local or remote address
     * @return whether to expect success; false as well when the provider is unavailable
     */
    boolean serves(InetSocketAddress address);

    /**
     * What it runs on, for the line that is logged when it is picked.
     *
     * @return for example {@code rxe0 (RoCEv2), siw0 (iWARP)}
     */
    String description();

    /**
     * What its completion loops have done, and what is registered with it.
     *
     * @return a snapshot
     */
    ProviderCounters counters();

    /**
     * Makes the I/O handler of a completion loop; an event loop group made with this factory can be given to
     * {@link #connect}, {@link #listen} and {@link IncomingConnection#accept}.
     *
     * @param options how its loops poll and block
     * @return the factory, for Netty's {@code MultiThreadIoEventLoopGroup}
     */
    IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions options);

    /**
     * Scatter/gather elements of a work request that suit a stream of many small pieces; they take room in the queues.
     *
     * @return {@link EndpointOptions#DEFAULTS}' if the provider does not care
     */
    default int usualSges() {
        return EndpointOptions.DEFAULTS.maxSges();
    }

    /**
     * Receives that a stream may keep posted if nobody says how many; a device's queues have room for all of them from the beginning.
     *
     * @return 16 if the provider does not care
     */
    default int usualStreamReceives() {
        return 16;
    }

    /**
     * Starts to connect. Returns at once; the handler hears the outcome on the loop's thread: prepared, then connected, or
     * disconnected with a {@link ConnectionException} that names address, step and reason. One timeout covers all steps.
     *
     * @param loop an event loop of this provider; the endpoint's thread
     * @param remoteAddress where to; resolved
     * @param options depths, limits, private data, timeout, local address
     * @param handler hears everything about this endpoint
     * @return the endpoint, not connected yet; {@link Endpoint#disconnect()} gives up
     */
    Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler);

    /**
     * Starts to listen. Returns at once; {@link ListenerHandler#onListening} or {@link ListenerHandler#onClosed} tells how
     * it went.
     *
     * @param loop an event loop of this provider; the listener's thread
     * @param localAddress where; port 0 takes any free one
     * @param options backlog, address reuse
     * @param handler hears connection requests
     * @return the listener, not listening yet
     */
    Listener listen(IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler);
}
