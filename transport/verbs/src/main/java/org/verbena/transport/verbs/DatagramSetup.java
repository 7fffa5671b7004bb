package org.verbena.transport.verbs;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.PortSpace;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.spi.DatagramOptions;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.TransportType;

/**
 * A datagram endpoint's part on a connection loop: the id that has its port and answers look-ups (SIDR requests) with
 * its queue pair's number, and the life of that queue pair. Confined to its {@link SetupLoop}, unless noted otherwise:
 * the common connection loop until the address is bound, then that of its device.
 */
final class DatagramSetup implements CmEventSink {
    private static final Logger LOG = LoggerFactory.getLogger(DatagramSetup.class);

    /** The kernel's limit of one step of a look-up; the endpoint's own limit holds for all of them. */
    private static final int RESOLVE_MILLIS = 10_000;

    private final VerbsDatagramEndpoint endpoint;
    private final VerbsProvider provider;
    private final InetSocketAddress requested;
    private final @Nullable InetSocketAddress toward;
    private final DatagramOptions options;

    private final SetupLoop loop;

    private @Nullable CmId id;

    // Written once, before the endpoint opens; read by all threads that work for it then.
    private volatile @Nullable QueuePair queuePair;
    private volatile @Nullable InetSocketAddress localAddress;
    private volatile @Nullable DatagramPeer self;
    private volatile int port;
    private volatile int gidIndex;

    DatagramSetup(
            VerbsDatagramEndpoint endpoint,
            VerbsProvider provider,
            InetSocketAddress requested,
            @Nullable InetSocketAddress toward,
            DatagramOptions options) {
        this.endpoint = endpoint;
        this.provider = provider;
        loop = new SetupLoop(provider);
        this.requested = requested;
        this.toward = toward;
        this.options = options;
    }

    // ---- any thread

    /**
     * Does a step on the connection loop that it is on.
     *
     * @throws NativeRdmaException there is no connection loop, for there is no device
     */
    void execute(Runnable step) {
        loop.execute(() -> {
            try {
                step.run();
            } catch (Throwable thrown) {
                Throwable cause = ConnectFailures.of(attempt() + " failed", NativeFailures.unchecked(thrown));
                endpoint.execute(() -> endpoint.drain(cause));
            }
        });
    }

    /** The connection loop that it is on: of its device, once it is open. */
    SetupLoop loop() {
        return loop;
    }

    AddressHandles addressHandles() {
        return provider.addressHandles();
    }

    /** What it does, for messages. */
    String attempt() {
        return "opening datagrams at " + VerbsProvider.format(requested);
    }

    int resolveMillis() {
        return RESOLVE_MILLIS;
    }

    QueuePair queuePair() {
        return Objects.requireNonNull(queuePair);
    }

    ProtectionDomain domain() {
        return queuePair().domain();
    }

    InetSocketAddress localAddress() {
        return Objects.requireNonNull(localAddress);
    }

    DatagramPeer self() {
        return Objects.requireNonNull(self);
    }

    /** The device's port. */
    int port() {
        return port;
    }

    /** This side's IP address, with any port: where look-ups come from. */
    InetSocketAddress anyPort() {
        return new InetSocketAddress(localAddress().getAddress(), 0);
    }

    /** The address vector of a queue pair that is known. */
    AddressVector vectorTo(DatagramPeer peer) {
        boolean hasGid = (peer.gidHigh() | peer.gidLow()) != 0;
        GlobalRoute route = hasGid
                ? new GlobalRoute(
                        new Gid(peer.gidHigh(), peer.gidLow()),
                        gidIndex,
                        GlobalRoute.to(Gid.ZERO, 0).hopLimit(),
                        options.trafficClass(),
                        0)
                : null;
        return new AddressVector(port, route, peer.lid(), peer.serviceLevel(), 0, 0);
    }

    // ---- opening

    /** Takes the port. */
    void begin() {
        try {
            InetSocketAddress wanted = deviceAddress();
            CmId made = loop.loop().newId(this, PortSpace.UDP);
            id = made;
            made.setReuseAddress(options.reuseAddress());
            made.bind(wanted);
            Context context = made.device();
            if (context == null) {
                throw new ConnectionException.Unreachable(
                        attempt() + " failed: no RDMA device serves the address; give one of a device");
            }
            if (!VerbsDevice.hasDatagrams(context)) {
                throw noDatagrams(context.device());
            }
            port = made.portNumber();
            localAddress = made.localAddress();
            loop.moveTo(context, made);
            endpoint.execute(() -> endpoint.prepare0(context));
        } catch (RuntimeException refused) {
            destroyId();
            throw explained(refused);
        }
    }

    private static ConnectionException noDatagrams(Device device) {
        return new ConnectionException.Unreachable(device.name()
                + (device.transportType() == TransportType.IWARP ? " is iWARP, which has" : " has")
                + " no datagrams (unreliable-datagram queue pairs): use a RoCE or InfiniBand device, or a UDP socket");
    }

    /** rdma_cm does not say that a device has no datagrams; it does not find it. */
    private RuntimeException explained(RuntimeException refused) {
        if (refused instanceof ConnectionException || requested.getAddress().isAnyLocalAddress()) {
            return refused;
        }
        Context context = deviceOf(requested.getAddress());
        return context != null && !VerbsDevice.hasDatagrams(context) ? noDatagrams(context.device()) : refused;
    }

    /** The address to bind to: a queue pair is one device's, so a wildcard is replaced. */
    private InetSocketAddress deviceAddress() {
        InetAddress wanted = requested.getAddress();
        if (wanted.isLoopbackAddress() || wanted.isMulticastAddress()) {
            throw new ConnectionException.Unreachable(
                    attempt() + " failed: it is not an address of an RDMA device; give one that is");
        }
        if (!wanted.isAnyLocalAddress()) {
            return requested;
        }
        InetAddress chosen = toward == null ? null : sourceToward(toward);
        if (chosen == null) {
            chosen = onlyAddress(wanted.getAddress().length);
        }
        LOG.debug("{}: the address is {}", attempt(), chosen);
        return new InetSocketAddress(chosen, requested.getPort());
    }

    private static @Nullable InetAddress sourceToward(InetSocketAddress remote) {
        try {
            return remote.getAddress().isMulticastAddress() ? null : VerbsProvider.sourceFor(remote);
        } catch (SocketException noRoute) {
            throw new ConnectionException.Unreachable(
                    "no route leads to " + VerbsProvider.format(remote) + ": " + noRoute.getMessage(), noRoute);
        }
    }

    /**
     * The address of the only device with datagrams that has one. rdma_cm finds the device of an address, on RoCE and
     * InfiniBand alike, and its network interface says whether it is up: no device is asked, so none can block this.
     */
    private InetAddress onlyAddress(int bytes) {
        Map<String, InetAddress> found = new TreeMap<>();
        for (InetAddress address : addressesThatAreUp()) {
            Context context = address.getAddress().length == bytes ? deviceOf(address) : null;
            if (context != null && VerbsDevice.hasDatagrams(context)) {
                found.putIfAbsent(context.device().name(), address);
            }
        }
        if (found.size() != 1) {
            throw new ConnectionException.Unreachable(attempt() + " failed: a queue pair belongs to one device, and "
                    + (found.isEmpty()
                            ? "none with datagrams has such an address on an interface that is up"
                            : String.join(", ", found.keySet()) + " have such addresses")
                    + "; bind to the address of a device, or connect");
        }
        return found.values().iterator().next();
    }

    private List<InetAddress> addressesThatAreUp() {
        List<InetAddress> found = new ArrayList<>();
        try {
            for (NetworkInterface each : Collections.list(NetworkInterface.getNetworkInterfaces())) {
                if (isUp(each)) {
                    each.inetAddresses()
                            .filter(address -> !address.isLoopbackAddress() && !address.isLinkLocalAddress())
                            .forEach(found::add);
                }
            }
            return found;
        } catch (SocketException unreadable) {
            throw new ConnectionException.Unreachable(
                    attempt() + " failed: this host's addresses cannot be read: " + unreadable.getMessage(),
                    unreadable);
        }
    }

    private static boolean isUp(NetworkInterface each) {
        try {
            return each.isUp();
        } catch (SocketException gone) {
            return false; // it was removed since it was listed
        }
    }

    /** The device that rdma_cm takes for an address of this host; null if there is none. */
    private @Nullable Context deviceOf(InetAddress address) {
        try (CmId probe = provider.connectionLoop().newId(this, PortSpace.TCP)) {
            probe.bind(new InetSocketAddress(address, 0));
            return probe.device();
        } catch (NativeRdmaException none) {
            LOG.trace("No device has {}", address, none);
            return null;
        }
    }

    /** The room for its completions is reserved: makes the queue pair, and answers look-ups from now on. */
    void createQueuePair(VerbsDevice device, ProtectionDomain domain, QueuePairOptions wanted) {
        CmId known = id;
        if (known == null) {
            return; // it was closed meanwhile
        }
        QueuePair made = device.createQueuePair(known, domain, wanted);
        queuePair = made;
        findSelf(device, made);
        known.listen(0);
        provider.devices().add(this);
        endpoint.execute(() -> endpoint.opened0(made));
    }

    /** The GID that packets have as their source: on RoCE that of the address, and of version 2 if there are both. */
    private void findSelf(VerbsDevice device, QueuePair made) {
        InetAddress local = localAddress().getAddress();
        PortAttributes its = device.port(port);
        if (its.linkLayer() != LinkLayer.ETHERNET) {
            Gid gid = device.context().queryGid(port, 0).gid();
            self = new DatagramPeer(gid.subnetPrefix(), gid.interfaceId(), made.number(), its.lid(), 0);
            return;
        }
        DatagramPeer own = DatagramPeer.of(local, made.number());
        self = own;
        for (GidEntry entry : device.context().queryGids()) {
            boolean isOurs = entry.port() == port
                    && entry.gid().subnetPrefix() == own.gidHigh()
                    && entry.gid().interfaceId() == own.gidLow();
            if (isOurs) {
                gidIndex = entry.index();
                if (entry.type() == GidType.ROCE_V2) {
                    return;
                }
            }
        }
    }

    /** Makes an id for a look-up or a group. */
    CmId newId(CmEventSink sink) {
        CmId made = loop.loop().newId(sink, PortSpace.UDP);
        if (options.trafficClass() != 0) {
            made.setTypeOfService(options.trafficClass());
        }
        return made;
    }

    // ---- what happens to the id

    @Override
    public void onCmEvent(CmEvent event) {
        if (loop.isHere()) {
            handle(event);
        } else {
            execute(() -> handle(event));
        }
    }

    private void handle(CmEvent event) {
        switch (event.type()) {
            case CONNECT_REQUEST -> answer(event.id());
            case DEVICE_REMOVAL -> {
                endpoint.onDeviceRemoval();
                provider.devices().findRemoved();
            }
            default -> LOG.debug("{}: {}", endpoint, event.describe());
        }
    }

    /** A peer looks this port up. */
    private void answer(CmId request) {
        QueuePair known = queuePair;
        try (request) {
            if (known != null && known.isOpen()) {
                request.accept(ConnectionParameters.DEFAULT.withQueuePair(known.number(), false));
            } else {
                request.reject(new byte[0]);
            }
        } catch (NativeRdmaException gone) {
            LOG.debug("{}: a look-up could not be answered: it no longer exists", endpoint, gone);
        }
    }

    /** A device is gone or unusable. Any thread. */
    void onDeviceLost(Context device) {
        execute(() -> {
            CmId known = id;
            if (known != null && !known.isClosed() && known.device() == device) {
                endpoint.onDeviceRemoval();
            }
        });
    }

    // ---- the end

    /** Stops answering look-ups, and makes the queue pair return all work. */
    void toErrorState() {
        try {
            QueuePairEnding.toErrorState(queuePair, endpoint);
        } finally {
            endpoint.execute(endpoint::inErrorState0);
        }
    }

    /**
     * Destroys everything.
     *
     * @param destinations what is left of them
     */
    void destroy(List<VerbsDestination> destinations) {
        provider.devices().remove(this);
        destinations.forEach(VerbsDestination::leave);
        QueuePairEnding.close(queuePair, endpoint, loop.loop().loop(), isGone -> {
            if (isGone) {
                destinations.forEach(VerbsDestination::destroyHandle);
                destroyId();
            }
            endpoint.execute(() -> endpoint.finish0(isGone));
        });
    }

    private void destroyId() {
        CmId known = id;
        if (known != null) {
            id = null;
            try {
                known.close();
            } catch (RuntimeException refused) {
                LOG.warn("The id of {} could not be destroyed", endpoint, refused);
            }
        }
    }
}
