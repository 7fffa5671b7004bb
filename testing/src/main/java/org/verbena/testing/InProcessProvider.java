package org.verbena.testing;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.PollCounters;
import org.verbena.transport.spi.ProviderCounters;
import org.verbena.transport.spi.RdmaProvider;

/**
 * RDMA within one process, for tests: without sockets, shared memory or devices. Everything that connections of other
 * providers do works, atomics and immediate data included, and {@link Faults} breaks it on demand.
 *
 * <pre>{@code
 * RdmaServer server = RdmaServer.builder().provider("inprocess").bind("127.0.0.1", 0, handler);
 * RdmaClient client = RdmaClient.builder().provider("inprocess").connect("127.0.0.1", server.port());
 * }</pre>
 *
 * <p>It is used where it is named, by {@code provider("inprocess")} or {@code -Dorg.verbena.provider=inprocess}, and
 * never by {@code auto}, {@code all} or a ladder that does not name it. Addresses are those of the loopback interface.
 * Its ports are not TCP's: each belongs to one server of this process, whichever loopback address it listens at.
 *
 * <p>It goes by the system's clock, except on the event loops that a test makes with {@link TestTime#provider()}.
 *
 * <p>A send or write is complete when it is on its way, which says nothing about the peer. Options that only devices
 * have, such as timers of RoCE, are ignored.
 */
public final class InProcessProvider implements RdmaProvider {

    /** The name that selects it. */
    public static final String NAME = "inprocess";

    /** Behind all others. */
    private static final int RANK = 10_000;

    /** How long a connect request waits for its server's decision, as on the software provider. */
    private static final int DECISION_MILLIS = 5_000;

    private static final int SHARED_RECEIVE_DEPTH = 1024;

    private final SoftwareDomain domain = new SoftwareDomain();
    private final PollCounters pollCounters = new PollCounters(NAME);
    private final int decisionMillis;
    private final @Nullable TestTime time;

    /** Creates a provider, as {@link java.util.ServiceLoader} does. */
    public InProcessProvider() {
        this(DECISION_MILLIS, null);
    }

    InProcessProvider(TestTime time) {
        this(DECISION_MILLIS, time);
    }

    InProcessProvider(int decisionMillis, @Nullable TestTime time) {
        this.decisionMillis = decisionMillis;
        this.time = time;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public int rank() {
        return RANK;
    }

    @Override
    public @Nullable Throwable unavailabilityCause() {
        return SoftwareIoHandler.unavailabilityCause();
    }

    /** {@inheritDoc} False, so that only a program that names this provider gets it. */
    @Override
    public boolean serves(InetSocketAddress address) {
        return false;
    }

    /** {@inheritDoc} Whether a server of this process listens there with this provider. */
    @Override
    public boolean reaches(InetSocketAddress remoteAddress) {
        return isLocal(remoteAddress) && Ports.listener(remoteAddress.getPort()) != null;
    }

    @Override
    public LoopClock clock() {
        return time == null ? LoopClock.system() : time.clock();
    }

    @Override
    public String description() {
        return "within this process, for tests";
    }

    @Override
    public ProviderCounters counters() {
        return pollCounters.snapshot(domain.registeredBytes());
    }

    /**
     * {@inheritDoc}
     *
     * <p>Only the option {@code sharedReceiveDepth} applies.
     */
    @Override
    public IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions options) {
        int asked = options.sharedReceiveDepth();
        return InProcessIoHandler.factory(
                domain,
                pollCounters,
                asked == CompletionLoopOptions.PROVIDER_DEFAULT ? SHARED_RECEIVE_DEPTH : asked,
                time);
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        return connect(loop, remoteAddress, options, handler, null);
    }

    Endpoint connect(
            IoEventLoop loop,
            InetSocketAddress remoteAddress,
            EndpointOptions options,
            EndpointHandler handler,
            @Nullable InProcessBinding bound) {
        checkLoop(loop);
        SoftwareIoHandler.checkResolved(remoteAddress);
        InProcessEndpoint made = new InProcessEndpoint(loop, domain, options, handler, remoteAddress, true);
        loop.execute(() -> made.connect(bound));
        return made;
    }

    @Override
    public LocalBinding bind(InetSocketAddress localAddress) {
        SoftwareIoHandler.checkResolved(localAddress);
        return new InProcessBinding(this, localAddress);
    }

    @Override
    public Listener listen(
            IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler) {
        checkLoop(loop);
        SoftwareIoHandler.checkResolved(localAddress);
        InProcessListener listener = new InProcessListener(this, loop, localAddress, handler);
        loop.execute(listener::open);
        return listener;
    }

    SoftwareDomain domain() {
        return domain;
    }

    int decisionMillis() {
        return decisionMillis;
    }

    static void checkLoop(IoEventLoop loop) {
        SoftwareIoHandler.checkLoop(loop, InProcessIoHandler.class, NAME);
    }

    static boolean isLocal(InetSocketAddress address) {
        InetAddress host = address.getAddress();
        return host != null && (host.isLoopbackAddress() || host.isAnyLocalAddress());
    }
}
