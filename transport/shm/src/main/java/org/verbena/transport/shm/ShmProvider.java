package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.io.IOException;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.HandshakeLimits;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.PollCounters;
import org.verbena.transport.spi.ProviderCounters;
import org.verbena.transport.spi.RdmaProvider;

/**
 * RDMA between processes of one host and one user, through memory that both have mapped. Linux only.
 *
 * <p>A server's address is this host's; its port is a number of this provider, not of TCP. Each connection has a file
 * of its own in memory with a ring for each direction, and a Unix socket that wakes a side that sleeps and ends with
 * the peer. Peers trust each other as processes of one user do: a hostile one can spoil only what its own connection
 * carries.
 *
 * <p>Connections belong to Netty event loops created with {@link #newIoHandlerFactory}. A send or write is complete
 * when it is in the ring, which says nothing about the peer.
 */
public final class ShmProvider implements RdmaProvider {

    /** The name that selects it. */
    public static final String NAME = "shm";

    /** Ranks behind all others: a server that listens only with it is not reached from other hosts. */
    private static final int RANK = 2000;

    /** If it is false, {@code auto} does without this provider, at servers and at clients. */
    private static final String AUTO_PROPERTY = "org.verbena.shm.auto";

    private final ShmContext context;
    private final PollCounters pollCounters = new PollCounters(NAME);

    /** Creates a provider with options from system properties, as {@link java.util.ServiceLoader} does. */
    public ShmProvider() {
        this(ShmOptions.ofSystemProperties());
    }

    /**
     * Creates a provider with the given options.
     *
     * @param options how it behaves
     */
    public ShmProvider(ShmOptions options) {
        context = ShmContext.of(options);
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
        String whyNot = Support.WHY_NOT;
        if (whyNot != null) {
            return new UnsupportedOperationException(whyNot);
        }
        try {
            SocketDirectory.open(context.options().directory());
            return null;
        } catch (IOException | RuntimeException | Error e) {
            return e;
        }
    }

    /** Asked once for the process. */
    private static final class Support {
        static final @Nullable String WHY_NOT = SharedFile.unavailabilityCause();

        private Support() {}
    }

    @Override
    public boolean serves(InetSocketAddress address) {
        return !address.isUnresolved()
                && SocketDirectory.isLocal(address.getAddress())
                && unavailabilityCause() == null;
    }

    /** All clients are of one machine, so that no address has a share. */
    @Override
    public HandshakeLimits handshakeLimits() {
        int most = context.options().maxHandshakes();
        return new HandshakeLimits(most, most, context.options().handshakeTimeoutMillis());
    }

    /** Whether a server of this user listens there with this provider. */
    @Override
    public boolean reaches(InetSocketAddress remoteAddress) {
        if (remoteAddress.isUnresolved()
                || Support.WHY_NOT != null
                || !SocketDirectory.isLocal(remoteAddress.getAddress())) {
            return false;
        }
        try {
            return SocketDirectory.open(context.options().directory()).find(remoteAddress) != null;
        } catch (IOException | RuntimeException | Error e) {
            return false;
        }
    }

    /** Unless {@code -Dorg.verbena.shm.auto=false}. */
    @Override
    public boolean joinsAuto() {
        return Boolean.parseBoolean(System.getProperty(AUTO_PROPERTY, "true"));
    }

    @Override
    public String description() {
        return "shared memory of this host and user";
    }

    /**
     * The domain that memory for this provider's endpoints is registered in. Available before any endpoint exists.
     *
     * @return the one domain
     */
    public MemoryDomain memoryDomain() {
        return context.domain();
    }

    @Override
    public ProviderCounters counters() {
        return pollCounters.snapshot(context.domain().registeredBytes());
    }

    /**
     * {@inheritDoc}
     *
     * <p>Only the options {@code spinNanos} and {@code sharedReceiveDepth} apply.
     */
    @Override
    public IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions loopOptions) {
        int asked = loopOptions.sharedReceiveDepth();
        ShmOptions options = context.options();
        return SoftwareIoHandler.factory(nio -> new ShmIoHandler(
                nio,
                loopOptions.spinNanos(),
                context.domain(),
                pollCounters.newLoop(),
                asked == CompletionLoopOptions.PROVIDER_DEFAULT ? options.sharedReceiveDepth() : asked,
                options.stallTimeoutMillis()));
    }

    static void checkLoop(IoEventLoop loop) {
        SoftwareIoHandler.checkLoop(loop, ShmIoHandler.class, NAME);
    }

    /** Enough for HTTP/2 frames of 16 KiB that fill a receive buffer, with a header each. */
    @Override
    public int usualSges() {
        return 16;
    }

    /** A queue is just an array here. */
    @Override
    public int usualStreamReceives() {
        return 128;
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        checkLoop(loop);
        SoftwareIoHandler.checkResolved(remoteAddress);
        ShmEndpoint.checkOptions(options);
        return connect(loop, context, remoteAddress, options, handler, null);
    }

    static Endpoint connect(
            IoEventLoop loop,
            ShmContext context,
            InetSocketAddress remoteAddress,
            EndpointOptions options,
            EndpointHandler handler,
            @Nullable ShmBinding bound) {
        ShmEndpoint made = new ShmEndpoint(loop, context, options, handler, remoteAddress, true);
        loop.execute(made.guarded(() -> made.setup().connect(bound)));
        return made;
    }

    @Override
    public LocalBinding bind(InetSocketAddress localAddress) {
        SoftwareIoHandler.checkResolved(localAddress);
        return ShmBinding.of(context, localAddress);
    }

    @Override
    public Listener listen(
            IoEventLoop loop, InetSocketAddress localAddress, ListenOptions listenOptions, ListenerHandler handler) {
        checkLoop(loop);
        SoftwareIoHandler.checkResolved(localAddress);
        ShmListener listener = new ShmListener(loop, context, localAddress, listenOptions, handler);
        loop.execute(listener::open);
        return listener;
    }
}
