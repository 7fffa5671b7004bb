package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.soft.uring.SocketIo;
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
 * RDMA in software: iWARP (RDMAP over DDP over MPA over TCP) in Java, on any machine and without privileges. It speaks
 * the wire format of the RFCs, so its peers may be Linux siw devices, iWARP adapters or this provider; only with the
 * latter does it have atomics and immediate data.
 *
 * <p>Connections belong to Netty event loops created with {@link #newIoHandlerFactory}, and do their own socket I/O
 * there, as handles of Netty's NIO handler. A send or write is complete when TCP has taken it, which says nothing about
 * the peer.
 *
 * <p>Source: RFC 5040, RFC 5041, RFC 5044, RFC 6581, RFC 7306
 */
public final class SoftProvider implements RdmaProvider {

    /** The name that selects it. */
    public static final String NAME = "soft";

    /** Ranks after every provider with devices. */
    private static final int RANK = 1000;

    private final SoftOptions options;
    private final SoftContext context;
    private final PollCounters pollCounters = new PollCounters(NAME);

    /** Creates a provider with options from system properties, as {@link java.util.ServiceLoader} does. */
    public SoftProvider() {
        this(SoftOptions.ofSystemProperties());
    }

    /**
     * Creates a provider with the given options.
     *
     * @param options how it behaves
     */
    public SoftProvider(SoftOptions options) {
        this.options = options;
        context = SoftContext.of(options);
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
        Throwable cause = SoftwareIoHandler.unavailabilityCause();
        if (cause == null && options.io() == SoftOptions.Io.IO_URING && SocketIo.unavailabilityCause() != null) {
            return new UnsupportedOperationException(
                    "org.verbena.soft.io is io_uring: " + SocketIo.unavailabilityCause());
        }
        return cause;
    }

    private boolean hasRings() {
        return options.io() != SoftOptions.Io.NIO
                && SoftwareIoHandler.unavailabilityCause() == null
                && SocketIo.unavailabilityCause() == null;
    }

    private String io() {
        if (hasRings()) {
            return ", on io_uring";
        }
        return options.io() == SoftOptions.Io.NIO || SoftwareIoHandler.unavailabilityCause() != null
                ? ", on NIO"
                : ", on NIO (io_uring: " + SocketIo.unavailabilityCause() + ")";
    }

    @Override
    public boolean serves(InetSocketAddress address) {
        return !address.isUnresolved();
    }

    @Override
    public String description() {
        return "iWARP over TCP in Java, any network interface" + (options.crc() ? ", with CRC32C" : "") + io();
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
     * <p>Only the options {@code spinNanos} and {@code sharedReceiveDepth} apply; with NIO a poll is a system call.
     */
    @Override
    public IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions loopOptions) {
        int depth = loopOptions.sharedReceiveDepth();
        SoftOptions ofLoop = depth == CompletionLoopOptions.PROVIDER_DEFAULT
                ? options
                : options.with(o -> o.sharedReceiveDepth = depth);
        Throwable cause = unavailabilityCause();
        if (cause != null) {
            throw new IllegalStateException(cause.getMessage(), cause);
        }
        if (hasRings()) {
            return SoftIoHandler.withRings(loopOptions.spinNanos(), ofLoop, context.domain(), pollCounters);
        }
        return SoftwareIoHandler.factory(nio ->
                new SoftIoHandler(nio, loopOptions.spinNanos(), ofLoop, context.domain(), pollCounters.newLoop()));
    }

    static void checkLoop(IoEventLoop loop) {
        SoftwareIoHandler.checkLoop(loop, SoftIoHandler.class, NAME);
    }

    /** Enough for HTTP/2 frames of 16 KiB that fill a receive buffer, with a header each. */
    @Override
    public int usualSges() {
        return 16;
    }

    @Override
    public boolean takesPlainTcp() {
        return true;
    }

    @Override
    public HandshakeLimits handshakeLimits() {
        return new HandshakeLimits(
                options.maxHandshakes(), options.maxHandshakesPerAddress(), options.handshakeTimeoutMillis());
    }

    /** A queue is just an array here. */
    @Override
    public int usualStreamReceives() {
        return 128;
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop,
            InetSocketAddress remoteAddress,
            EndpointOptions endpointOptions,
            EndpointHandler handler) {
        checkLoop(loop);
        SoftwareIoHandler.checkResolved(remoteAddress);
        return SoftEndpoint.connecting(loop, context, endpointOptions, handler, remoteAddress, null);
    }

    @Override
    public LocalBinding bind(InetSocketAddress localAddress) {
        SoftwareIoHandler.checkResolved(localAddress);
        return SoftBinding.of(context, localAddress);
    }

    @Override
    public Listener listen(
            IoEventLoop loop, InetSocketAddress localAddress, ListenOptions listenOptions, ListenerHandler handler) {
        checkLoop(loop);
        SoftwareIoHandler.checkResolved(localAddress);
        SoftListener listener = new SoftListener(loop, context, localAddress, listenOptions, handler);
        loop.execute(listener::open);
        return listener;
    }
}
