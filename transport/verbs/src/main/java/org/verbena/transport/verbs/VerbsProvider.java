package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.Cm;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.QueuePairRoute;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.DatagramHandler;
import org.verbena.transport.spi.DatagramOptions;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.PollCounters;
import org.verbena.transport.spi.ProviderCounters;
import org.verbena.transport.spi.RateLimitedLog;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.verbs.epoll.Epoll;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.TransportType;

/**
 * The native provider: InfiniBand, RoCE and iWARP devices of Linux through rdma-core's librdmacm and libibverbs,
 * including the kernel's software devices rdma_rxe and siw.
 *
 * <p>Found by {@link java.util.ServiceLoader}. Creating one is cheap. The connection loops, daemon threads, start with
 * the first connection or listener, and with the first one of a device, and run as long as the process; a device's
 * context and protection domain stay open as long, unless the device is removed.
 */
public final class VerbsProvider implements RdmaProvider {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsProvider.class);

    private static final String NAME = "verbs";
    private static final int RANK = 100;

    /** Twice the adapters of the largest hosts; devices that are made under ever new names share the common loop. */
    private static final int MAX_DEVICE_LOOPS = 32;

    private final VerbsDevices devices = new VerbsDevices(this);
    private final PollCounters pollCounters = new PollCounters(NAME);
    /** Connections refused, and loops not started, because this side lacks a resource. */
    private final RateLimitedLog refusals = new RateLimitedLog(LOG);

    private final AddressHandles addressHandles = new AddressHandles();

    private @Nullable ConnectionLoop connectionLoop; // guarded by this

    /**
     * The connection loops of devices by the names of these, for the life of the process: a device that was removed
     * gets its own back. Guarded by this.
     */
    private final Map<String, ConnectionLoop> deviceLoops = new LinkedHashMap<>();

    private final int decisionMillis;

    /** For the service loader. */
    public VerbsProvider() {
        this(EndpointOptions.DEFAULTS.connectTimeoutMillis());
    }

    /**
     * For tests.
     *
     * @param decisionMillis how long a connection request waits for a decision
     */
    VerbsProvider(int decisionMillis) {
        this.decisionMillis = decisionMillis;
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
        Throwable cause = Epoll.unavailabilityCause();
        if (cause == null) {
            cause = Verbs.unavailabilityCause();
        }
        if (cause == null) {
            cause = Cm.unavailabilityCause();
        }
        if (cause == null) {
            try {
                cause = Cm.devices().isEmpty() ? openFailure() : null;
            } catch (NativeRdmaException unreadable) {
                cause = unreadable;
            }
        }
        return cause;
    }

    /**
     * Why a device cannot be opened: librdmacm does not say.
     *
     * @return of the first one, null if all can be opened
     */
    static @Nullable NativeRdmaException openFailure() {
        try {
            for (Device device : Verbs.devices()) {
                device.open().close();
            }
            return null;
        } catch (NativeRdmaException refused) {
            return refused;
        }
    }

    @Override
    public boolean serves(InetSocketAddress address) {
        if (address.isUnresolved() || unavailabilityCause() != null) {
            return false;
        }
        try {
            InetAddress local = address.getAddress();
            if (local.isAnyLocalAddress()) {
                return anyAddress(local, VerbsDevice::connects);
            }
            if (local.isMulticastAddress()) {
                return false;
            }
            if (NetworkInterface.getByInetAddress(local) == null) {
                local = sourceFor(address);
            }
            return local != null && hasLiveDevice(local, VerbsDevice::connects);
        } catch (NativeRdmaException | IOException noWay) {
            return false;
        }
    }

    /** The source address that the routing table chooses for packets; nothing is sent. */
    static @Nullable InetAddress sourceFor(InetSocketAddress remote) throws SocketException {
        try (DatagramSocket probe = new DatagramSocket()) {
            probe.connect(new InetSocketAddress(remote.getAddress(), Math.max(1, remote.getPort())));
            InetAddress source = probe.getLocalAddress();
            return source == null || source.isAnyLocalAddress() ? null : source;
        } catch (java.io.UncheckedIOException noRoute) {
            return null;
        }
    }

    /**
     * rdma_cm binds the loopback address to an arbitrary device, through which it then does not connect; so no device
     * serves it.
     */
    private static boolean hasLiveDevice(InetAddress local, Predicate<Context> suits) {
        if (local.isLoopbackAddress()) {
            return false;
        }
        try (EventChannel channel = EventChannel.open();
                CmId id = CmId.create(channel, PortSpace.TCP)) {
            id.bind(new InetSocketAddress(local, 0));
            Context device = id.device();
            return device != null && suits.test(device) && VerbsDevice.isUp(device);
        }
    }

    /**
     * Whether a device of the kind wanted has an address of this host: a wildcard listens on those only. There are
     * adapters without one as well, such as Amazon's, whose port is up although no peer can connect to it.
     */
    private static boolean anyAddress(InetAddress wildcard, Predicate<Context> suits) throws SocketException {
        return NetworkInterface.networkInterfaces()
                .flatMap(NetworkInterface::inetAddresses)
                .anyMatch(local ->
                        (wildcard instanceof Inet6Address || local instanceof Inet4Address) && has(local, suits));
    }

    private static boolean has(InetAddress local, Predicate<Context> suits) {
        try {
            return hasLiveDevice(local, suits);
        } catch (NativeRdmaException none) {
            return false;
        }
    }

    private static List<Context> liveDevices() {
        List<Context> live = new ArrayList<>();
        for (Context context : Cm.devices()) {
            if (VerbsDevice.isUp(context)) {
                live.add(context);
            }
        }
        return live;
    }

    @Override
    public String description() {
        try {
            List<String> names = new ArrayList<>();
            for (Context context : liveDevices()) {
                names.add(context.device().name() + " (" + kind(context) + ")");
            }
            return names.isEmpty() ? "no device that is up" : String.join(", ", names);
        } catch (NativeRdmaException | UnsupportedOperationException unavailable) {
            return String.valueOf(unavailable.getMessage());
        }
    }

    private static String kind(Context context) {
        TransportType transport = context.device().transportType();
        if (transport == TransportType.IWARP) {
            return "iWARP";
        }
        if (transport != TransportType.IB) {
            return context.driverFamily().title() + ", no reliable connections";
        }
        return context.queryPort(1).linkLayer() == LinkLayer.ETHERNET ? "RoCE" : "InfiniBand";
    }

    @Override
    public ProviderCounters counters() {
        return pollCounters.snapshot(devices.registeredBytes());
    }

    PollCounters pollCounters() {
        return pollCounters;
    }

    /** How long a connection request waits for a decision. */
    int decisionMillis() {
        return decisionMillis;
    }

    RateLimitedLog refusals() {
        return refusals;
    }

    @Override
    public IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions options) {
        AtomicInteger loops = new AtomicInteger();
        return executor ->
                new CompletionIoHandler(this, executor, options, loops.getAndIncrement() & Integer.MAX_VALUE);
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        requireOwnLoop(loop);
        requireResolved(remoteAddress);
        VerbsEndpoint endpoint = VerbsEndpoints.connecting(this, loop, options, handler, remoteAddress, null);
        endpoint.start();
        return endpoint;
    }

    @Override
    public boolean connectsByHand() {
        return true;
    }

    @Override
    public Endpoint connectByHand(
            IoEventLoop loop,
            QueuePairRoute route,
            QueuePairExchange exchange,
            EndpointOptions options,
            EndpointHandler handler) {
        requireOwnLoop(loop);
        VerbsEndpoint endpoint = VerbsEndpoints.byHand(this, loop, options, handler, route, exchange);
        endpoint.start();
        return endpoint;
    }

    @Override
    public LocalBinding bind(InetSocketAddress localAddress) {
        requireResolved(localAddress);
        return VerbsBinding.of(this, localAddress);
    }

    @Override
    public Listener listen(
            IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler) {
        requireOwnLoop(loop);
        requireResolved(localAddress);
        VerbsListener listener = new VerbsListener(this, loop, localAddress, options, handler);
        listener.start();
        return listener;
    }

    @Override
    public boolean hasDatagrams() {
        if (unavailabilityCause() != null) {
            return false;
        }
        try {
            return anyAddress(InetAddress.ofLiteral("::"), VerbsDevice::hasDatagrams);
        } catch (NativeRdmaException | SocketException unreadable) {
            return false;
        }
    }

    @Override
    public DatagramEndpoint openDatagrams(
            IoEventLoop loop,
            InetSocketAddress localAddress,
            @Nullable InetSocketAddress toward,
            DatagramOptions options,
            DatagramHandler handler) {
        requireOwnLoop(loop);
        requireResolved(localAddress);
        VerbsDatagramEndpoint endpoint = new VerbsDatagramEndpoint(this, loop, localAddress, toward, options, handler);
        endpoint.start();
        return endpoint;
    }

    /** Makes address handles. */
    AddressHandles addressHandles() {
        return addressHandles;
    }

    void requireOwnLoop(IoEventLoop loop) {
        if (!loop.isCompatible(VerbsEndpoint.class)) {
            throw new IllegalArgumentException(
                    "the event loop " + loop + " is not one of the verbs provider: make its group with"
                            + " newIoHandlerFactory of this provider");
        }
    }

    static void requireResolved(InetSocketAddress address) {
        if (address.isUnresolved()) {
            throw new IllegalArgumentException(address + " is unresolved: look the name up first");
        }
    }

    /**
     * The common connection loop; started with the first call.
     *
     * @throws NativeRdmaException there is no device, or no permission
     */
    synchronized ConnectionLoop connectionLoop() {
        ConnectionLoop known = connectionLoop;
        if (known == null) {
            known = new ConnectionLoop("verbena-connections", devices::findRemoved);
            connectionLoop = known;
        }
        return known;
    }

    /**
     * The connection loop of a device; started with the first call. Where it cannot be started, for want of a
     * descriptor for instance, the common one does the work until a later call can start it.
     *
     * @throws NativeRdmaException there is no permission
     */
    synchronized ConnectionLoop connectionLoopOf(Context device) {
        String name = device.device().name();
        ConnectionLoop known = deviceLoops.get(name);
        if (known == null && deviceLoops.size() < MAX_DEVICE_LOOPS) {
            known = startedFor(device.device());
            if (known != null) {
                deviceLoops.put(name, known);
            }
        }
        return known == null ? connectionLoop() : known;
    }

    private @Nullable ConnectionLoop startedFor(Device device) {
        try {
            ConnectionLoop made = new ConnectionLoop("verbena-" + device.name(), null);
            made.loop().execute(() -> ProcessorAffinity.keepOn(ProcessorAffinity.near(device)));
            return made;
        } catch (RuntimeException refused) {
            refusals.warn(device.name() + " has no connection loop of its own for now; the common one does its work: "
                    + refused.getMessage());
            return null;
        }
    }

    /** For tests: waits until each connection loop has had its turn, the common one first. */
    void awaitConnectionLoops() {
        List<ConnectionLoop> loops = new ArrayList<>(List.of(connectionLoop()));
        synchronized (this) {
            loops.addAll(deviceLoops.values());
        }
        loops.forEach(each -> each.loop().submit(() -> {}).syncUninterruptibly());
    }

    VerbsDevices devices() {
        return devices;
    }

    /**
     * For tests: gives everything back that is kept for the life of the process. When nothing uses the provider any
     * more.
     */
    void close() {
        devices.stop();
        addressHandles.close();
        List<ConnectionLoop> known = new ArrayList<>();
        synchronized (this) {
            known.addAll(deviceLoops.values());
            deviceLoops.clear();
            if (connectionLoop != null) {
                known.add(connectionLoop);
                connectionLoop = null;
            }
        }
        known.forEach(ConnectionLoop::close);
        devices.close();
    }

    /** An address for messages: without a host name, and with brackets where they are needed. */
    static String format(InetSocketAddress address) {
        InetAddress ip = address.getAddress();
        if (ip == null) {
            return address.getHostString() + ":" + address.getPort();
        }
        String host = ip.getHostAddress();
        return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + address.getPort();
    }

    /** What stands for an address that is not an IP address, as InfiniBand's own are. */
    static InetSocketAddress orWildcard(@Nullable InetSocketAddress address) {
        if (address != null) {
            return address;
        }
        try {
            return new InetSocketAddress(InetAddress.getByAddress(new byte[4]), 0);
        } catch (UnknownHostException impossible) {
            throw new IllegalStateException("four bytes are an address", impossible);
        }
    }
}
