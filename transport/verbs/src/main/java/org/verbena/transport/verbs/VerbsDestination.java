package org.verbena.transport.verbs;

import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.DatagramParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.MulticastMembership;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.verbs.AddressHandle;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GlobalRoute;

/**
 * A destination of a datagram endpoint, from the look-up to the last send.
 *
 * <pre>{@code
 *             the endpoint's loop               connection loop                        address thread
 *
 *   a port    start0 ------------------------>  resolve address, route, connect (SIDR)
 *                                               ESTABLISHED ------------------------>  create the address handle
 *   a group   start0 ------------------------>  bind, join
 *                                               MULTICAST_JOIN: attach ------------->  create the address handle
 *   a peer    start0 ------------------------------------------------------------->   create the address handle
 *             created0: onResolved  <------------------------------------------------
 *             close(), and the last send is done: release0
 *                      ---------------------->  detach, destroy id and address handle
 * }</pre>
 */
final class VerbsDestination implements DatagramDestination, CmEventSink {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsDestination.class);

    private final VerbsDatagramEndpoint endpoint;
    private final DatagramSetup setup;

    /** What is looked up; null if the queue pair is known. */
    private final @Nullable InetSocketAddress address;

    private final boolean isGroup;

    /** Whether what is sent to the group is received. */
    private final boolean isMember;

    // ---- only the endpoint's loop's thread

    private @Nullable DatagramPeer peer;
    private @Nullable AddressHandle ready;
    private int queueKey;
    private int outstanding;
    private boolean isClosed;
    private boolean isReleased;
    private @Nullable Future<?> timeout;

    // ---- only the connection loop's thread

    private @Nullable CmId id;
    private @Nullable RouteCall route;
    private boolean isIdDone;
    private @Nullable Gid attachedGroup;
    private int attachedLid;
    private boolean isAnswered;
    private boolean isEnded;

    // ---- guarded by this: between the address thread and the connection loop

    private @Nullable AddressHandle handle;
    private boolean isAbandoned;

    private VerbsDestination(
            VerbsDatagramEndpoint endpoint,
            DatagramSetup setup,
            @Nullable InetSocketAddress address,
            @Nullable DatagramPeer peer,
            boolean isMember) {
        this.endpoint = endpoint;
        this.setup = setup;
        this.address = address;
        this.peer = peer;
        this.isMember = isMember;
        isGroup = address != null && address.getAddress().isMulticastAddress();
    }

    /** The queue pair that serves an address, or a group to send to. */
    static VerbsDestination of(VerbsDatagramEndpoint endpoint, DatagramSetup setup, InetSocketAddress address) {
        return new VerbsDestination(endpoint, setup, address, null, false);
    }

    /** A group to receive from as well. */
    static VerbsDestination member(VerbsDatagramEndpoint endpoint, DatagramSetup setup, InetSocketAddress group) {
        return new VerbsDestination(endpoint, setup, group, null, true);
    }

    /** A queue pair that is known. */
    static VerbsDestination of(VerbsDatagramEndpoint endpoint, DatagramSetup setup, DatagramPeer peer) {
        return new VerbsDestination(endpoint, setup, null, peer, false);
    }

    // ---- the endpoint's loop

    /** Begins; the endpoint is notified of the outcome later. */
    void start0(int timeoutMillis) {
        timeout = endpoint.loop()
                .schedule(
                        () -> fail0(new ConnectionException.TimedOut(
                                attempt() + " took longer than " + timeoutMillis + " ms: nobody has answered")),
                        timeoutMillis,
                        TimeUnit.MILLISECONDS);
        if (address == null) {
            DatagramPeer known = Objects.requireNonNull(peer);
            create(setup.vectorTo(known), known.queuePairNumber(), DatagramParameters.UDP_QUEUE_KEY);
        } else {
            setup.execute(() -> begin(timeoutMillis));
        }
    }

    private String attempt() {
        InetSocketAddress asked = address;
        if (asked == null) {
            return "preparing to send to " + peer;
        }
        return isGroup
                ? "joining the group " + asked.getAddress().getHostAddress()
                : "looking up datagrams at " + VerbsProvider.format(asked);
    }

    private void created0(AddressHandle made, DatagramPeer found, int key) {
        if (isClosed) {
            return;
        }
        cancelTimeout0();
        ready = made;
        peer = found;
        queueKey = key;
        endpoint.resolved0(this, null);
    }

    /** The look-up has failed, or a group is lost. */
    void fail0(Throwable cause) {
        if (isClosed) {
            return;
        }
        boolean wasReady = ready != null;
        close();
        if (wasReady) {
            endpoint.groupLost0(this, cause);
        } else {
            endpoint.resolved0(this, cause);
        }
    }

    private void cancelTimeout0() {
        Future<?> running = timeout;
        if (running != null) {
            timeout = null;
            running.cancel(false);
        }
    }

    @Override
    public boolean isReady() {
        return ready != null && !isClosed;
    }

    @Override
    public @Nullable DatagramPeer peer() {
        return ready == null ? null : peer;
    }

    @Override
    public void close() {
        if (!isClosed) {
            isClosed = true;
            cancelTimeout0();
            if (outstanding == 0) {
                release0();
            }
        }
    }

    /** Sets the destination of the work request that was begun last. */
    void address(SendQueue staging) {
        DatagramPeer known = Objects.requireNonNull(peer);
        staging.to(Objects.requireNonNull(ready), known.queuePairNumber(), queueKey);
    }

    /** A send to it is out. */
    void sending() {
        outstanding++;
    }

    /** A send to it has completed. */
    void sent() {
        outstanding--;
        if (outstanding == 0 && isClosed) {
            release0();
        }
    }

    private void release0() {
        if (!isReleased) {
            isReleased = true;
            endpoint.released0(this);
            setup.execute(() -> {
                leave();
                destroyHandle();
            });
        }
    }

    VerbsDatagramEndpoint endpoint() {
        return endpoint;
    }

    // ---- the connection loop

    private void begin(int timeoutMillis) {
        if (isEnded) {
            return;
        }
        InetSocketAddress asked = Objects.requireNonNull(address);
        try {
            CmId made = setup.newId(this);
            id = made;
            if (isGroup) {
                made.bind(setup.anyPort());
                made.joinMulticast(
                        new InetSocketAddress(asked.getAddress(), 0),
                        isMember ? MulticastMembership.FULL : MulticastMembership.SEND_ONLY);
            } else {
                made.resolveAddress(setup.anyPort(), asked, timeoutMillis);
            }
        } catch (RuntimeException refused) {
            failed(ConnectFailures.of(attempt(), refused));
        }
    }

    private void failed(Throwable cause) {
        leave();
        endpoint.execute(() -> fail0(cause));
    }

    @Override
    public void onCmEvent(CmEvent event) {
        if (isEnded) {
            return;
        }
        try {
            switch (event.type()) {
                case ADDR_RESOLVED -> {
                    RouteCall made = new RouteCall(event.id(), Objects.requireNonNull(address));
                    route = made;
                    setup.loop().loop().blockingConnects().submit(made);
                }
                case ROUTE_RESOLVED ->
                    event.id()
                            .connect(ConnectionParameters.DEFAULT.withQueuePair(
                                    setup.queuePair().number(), false));
                case ESTABLISHED -> {
                    DatagramParameters answer = answered(event);
                    closeId(); // it was only needed for the answer
                    create(answer.address(), answer.queuePairNumber(), answer.queueKey());
                }
                case MULTICAST_JOIN -> {
                    DatagramParameters joined = answered(event);
                    attach(joined.address());
                    create(joined.address(), joined.queuePairNumber(), joined.queueKey());
                }
                case DEVICE_REMOVAL -> endpoint.onDeviceRemoval();
                case ADDR_CHANGE -> LOG.debug("{}: {}", attempt(), event.describe());
                default -> {
                    if (!isAnswered || event.type() == CmEventType.MULTICAST_ERROR) {
                        failed(ConnectFailures.of(attempt(), event));
                    }
                }
            }
        } catch (RuntimeException refused) {
            failed(ConnectFailures.of(attempt(), refused));
        }
    }

    /** Resolves the route by a call that may block, for the same reason as that of a connection does. */
    private final class RouteCall extends BlockingConnects.Call {
        private final CmId known;
        private @Nullable EventChannel own;

        RouteCall(CmId known, InetSocketAddress asked) {
            super(asked);
            this.known = known;
        }

        @Override
        boolean begin() {
            try {
                own = setup.loop().loop().leave(known);
                return true;
            } catch (RuntimeException refused) {
                route = null;
                failed(ConnectFailures.of(attempt(), refused));
                return false;
            }
        }

        @Override
        void connect() {
            RuntimeException failure = null;
            try {
                known.resolveRoute(setup.resolveMillis());
            } catch (Throwable refused) {
                failure = NativeFailures.unchecked(refused);
            }
            RuntimeException outcome = failure;
            setup.execute(() -> returned(outcome));
        }

        @Override
        void refused(RuntimeException why) {
            returned(why);
        }

        @Override
        void waiting(String reason) {
            LOG.debug("{}: {}", attempt(), reason);
        }

        private void returned(@Nullable RuntimeException refused) {
            route = null;
            if (isIdDone) {
                closeId();
            }
            EventChannel left = Objects.requireNonNull(own);
            try {
                if (known.isClosed()) {
                    setup.loop().loop().closeOwn(left);
                } else {
                    setup.loop().loop().rejoin(known, left);
                }
            } catch (RuntimeException still) {
                LOG.warn("The event channel for {} could not be destroyed", attempt(), still);
            }
            if (refused != null && !isEnded) {
                failed(ConnectFailures.of(attempt(), refused));
            }
        }
    }

    private DatagramParameters answered(CmEvent event) {
        isAnswered = true;
        return Objects.requireNonNull(event.datagram());
    }

    private void attach(AddressVector group) {
        GlobalRoute route = group.route();
        if (isMember && route != null) {
            setup.queuePair().attachMulticast(route.destination(), group.destinationLid());
            attachedGroup = route.destination();
            attachedLid = group.destinationLid();
        }
    }

    /** Leaves the group, and cancels what is pending. Idempotent. */
    void leave() {
        isEnded = true;
        Gid group = attachedGroup;
        if (group != null) {
            attachedGroup = null;
            try {
                QueuePair attached = setup.queuePair();
                if (attached.isOpen()) {
                    attached.detachMulticast(group, attachedLid);
                }
            } catch (NativeRdmaException gone) {
                LOG.debug("{} could not be left", this, gone);
            }
        }
        closeId();
    }

    /** Closes the id, or has that done when the call that resolves its route has returned. Idempotent. */
    private void closeId() {
        isIdDone = true;
        RouteCall resolving = route;
        if (resolving != null) {
            if (!setup.loop().loop().blockingConnects().cancel(resolving)) {
                return;
            }
            route = null;
        }
        CmId known = id;
        if (known != null) {
            id = null;
            try {
                known.close();
            } catch (RuntimeException refused) {
                LOG.warn("The id for {} could not be destroyed", attempt(), refused);
            }
        }
    }

    /** Destroys the address handle, now or when it has been made. No send uses it any more. */
    void destroyHandle() {
        AddressHandle made;
        synchronized (this) {
            isAbandoned = true;
            made = handle;
            handle = null;
        }
        if (made != null) {
            destroy(made);
        }
    }

    private static void destroy(AddressHandle made) {
        try {
            made.close();
        } catch (RuntimeException refused) {
            LOG.warn("{} could not be destroyed", made, refused);
        }
    }

    // ---- the address thread

    private void create(AddressVector vector, int queuePairNumber, int key) {
        try {
            setup.addressHandles().execute(address != null, () -> createHandle(vector, queuePairNumber, key));
        } catch (ConnectionException full) {
            endpoint.execute(() -> fail0(full));
        }
    }

    private void createHandle(AddressVector vector, int queuePairNumber, int key) {
        synchronized (this) {
            if (isAbandoned) {
                return;
            }
        }
        AddressHandle made;
        try {
            made = setup.domain().createAddressHandle(vector);
        } catch (RuntimeException refused) {
            endpoint.execute(() -> fail0(ConnectFailures.of(attempt(), refused)));
            return;
        }
        boolean isLate;
        synchronized (this) {
            isLate = isAbandoned;
            if (!isLate) {
                handle = made;
            }
        }
        if (isLate) {
            destroy(made);
            return;
        }
        DatagramPeer found = peerAt(vector, queuePairNumber);
        endpoint.execute(() -> created0(made, found, key));
    }

    private static DatagramPeer peerAt(AddressVector vector, int queuePairNumber) {
        GlobalRoute route = vector.route();
        Gid gid = route == null ? Gid.ZERO : route.destination();
        return new DatagramPeer(
                gid.subnetPrefix(), gid.interfaceId(), queuePairNumber, vector.destinationLid(), vector.serviceLevel());
    }

    @Override
    public String toString() {
        InetSocketAddress asked = address;
        return asked == null ? String.valueOf(peer) : VerbsProvider.format(asked);
    }
}
