package org.verbena.transport.verbs;

import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.device.DriverFamily;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.queue.QueuePairState;

/**
 * The setup of an endpoint with rdma_cm: its id, and the events of it.
 *
 * <p>Confined to its {@link SetupLoop}, unless noted otherwise: the common connection loop until its address is
 * resolved, then that of its device.
 */
final class ConnectionSetup extends EndpointSetup implements CmEventSink {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionSetup.class);

    /**
     * The longest wait of an id for the peer's answer to its disconnect request, which the kernel repeats
     * meanwhile: a peer that is idle would not learn of the end if the only request were lost.
     */
    private static final long LINGER_MILLIS = 60_000;

    private final VerbsEndpoint endpoint;
    private final VerbsProvider provider;
    private final EndpointOptions options;
    private final InetSocketAddress remoteAddress;
    private final boolean isAccepting;

    private @Nullable CmId id;

    /** A connection request was accepted or rejected. */
    private boolean isAnswered;

    /** The connect call was made, and no outcome has come. */
    private boolean isConnecting;

    /** The route is being resolved by a call that may block, which uses the id: so there is no queue pair yet. */
    private boolean isResolving;

    /** That call has not returned, but its event has come. */
    private boolean isRouteKnown;

    private @Nullable LinkLayer linkLayer;

    /** The endpoint is gone, and the queue pair or the id waits for the outcome of a call. */
    private boolean isOrphaned;

    /** The connect call, where it may block. */
    private BlockingConnects.@Nullable Call call;

    /** The event channel of an id whose connect call may block. */
    private @Nullable EventChannel ownChannel;

    /** The peer knows of the end, or there is no peer. */
    private boolean isDisconnectSeen;

    /** The id is no longer needed. */
    private boolean isDone;

    ConnectionSetup(
            VerbsEndpoint endpoint,
            VerbsProvider provider,
            EndpointOptions options,
            InetSocketAddress remoteAddress,
            @Nullable CmEvent request,
            @Nullable CmId bound,
            SetupLoop loop) {
        super(endpoint, loop);
        this.endpoint = endpoint;
        this.provider = provider;
        this.options = options;
        this.remoteAddress = remoteAddress;
        isAccepting = request != null;
        id = request == null ? bound : request.id();
    }

    @Override
    String attempt() {
        return (isAccepting ? "accepting " : "connecting to ") + peer();
    }

    @Override
    String waiting() {
        return isAccepting ? "waiting for the peer to confirm" : "waiting for the peer to accept";
    }

    @Override
    String peer() {
        return VerbsProvider.format(remoteAddress);
    }

    @Override
    boolean peerTakesWrites() {
        return true;
    }

    @Override
    boolean reportsPeerEnd() {
        return true;
    }

    // ---- connecting and accepting

    /** Starts to resolve address and route, or takes those of the request. */
    @Override
    void begin() {
        if (isGivenUp()) {
            return;
        }
        if (isAccepting) {
            try {
                setAckTimeout(VerbsEndpoint.required(id));
            } catch (RuntimeException refused) {
                fail(failureOf(refused));
                return;
            }
            prepare();
            return;
        }
        setStep("resolving the address");
        try {
            CmId made = id;
            if (made == null) {
                made = provider.connectionLoop().newId(this);
                id = made;
            } else {
                made.attach(this);
            }
            if (options.trafficClass() != 0) {
                made.setTypeOfService(options.trafficClass());
            }
            made.resolveAddress(null, remoteAddress, options.connectTimeoutMillis());
        } catch (RuntimeException refused) {
            fail(failureOf(refused));
        }
    }

    /** The address is resolved: goes on where its device may block. */
    private void onDeviceKnown(CmId known) {
        Context device = known.device();
        if (device != null) {
            loop().moveTo(device, known);
        }
        execute(() -> resolveRoute(known));
    }

    private void resolveRoute(CmId known) {
        if (isGivenUp()) {
            return;
        }
        setStep("resolving the route");
        try {
            setAckTimeout(known); // the kernel puts it into the path, and so into what it asks the peer for
            Context device = known.device();
            if (device != null && device.device().transportType() == TransportType.IB) {
                submit(new RouteCall(known));
            } else {
                known.resolveRoute(options.connectTimeoutMillis());
            }
        } catch (RuntimeException refused) {
            fail(failureOf(refused));
        }
    }

    /** The port's link layer, queried once; null before the device is known. */
    private @Nullable LinkLayer linkLayer(CmId known) {
        LinkLayer asked = linkLayer;
        Context context = known.device();
        if (asked == null && context != null) {
            asked = context.queryPort(Math.max(1, known.portNumber())).linkLayer();
            linkLayer = asked;
        }
        return asked;
    }

    private void submit(BlockingConnects.Call made) {
        call = made;
        loop().loop().blockingConnects().submit(made);
    }

    /**
     * Resolves a route by a call that may block: on InfiniBand, and on RoCE just as well, librdmacm first asks ibacm
     * where that runs, over a socket, without a timeout and one thread at a time (rdma-core 65, librdmacm/cma.c,
     * rdma_resolve_route, ucma_set_ib_route; acm.c, ucma_ib_resolve).
     */
    private final class RouteCall extends BlockingConnects.Call {
        private final CmId known;

        RouteCall(CmId known) {
            super(remoteAddress);
            this.known = known;
        }

        @Override
        boolean begin() {
            if (isGivenUp()) {
                return false;
            }
            try {
                ownChannel = loop().loop().leave(known);
                isResolving = true;
                return true;
            } catch (RuntimeException refused) {
                fail(failureOf(refused));
                return false;
            }
        }

        @Override
        void connect() {
            RuntimeException failure = null;
            try {
                known.resolveRoute(options.connectTimeoutMillis());
            } catch (Throwable refused) {
                failure = NativeFailures.unchecked(refused);
            }
            RuntimeException outcome = failure;
            execute(() -> callReturned(outcome));
        }

        @Override
        void refused(RuntimeException why) {
            callReturned(why);
        }

        @Override
        void waiting(String reason) {
            setStep(reason);
        }
    }

    /**
     * Sets how soon a packet is sent again: as the program asked or, on the RoCE of adapters, this provider's default.
     *
     * @throws CmException the kernel does not take what the program wants
     */
    private void setAckTimeout(CmId known) {
        Context context = known.device();
        boolean isDefault = options.ackTimeoutMicros() == EndpointOptions.DEVICE_DEFAULT;
        if (context == null || (isDefault && !isRoceOfAnAdapter(context, known))) {
            return;
        }
        try {
            known.setAckTimeout(AckTimeout.exponent(options.ackTimeoutMicros(), AckTimeout.ROCE_EXPONENT));
        } catch (CmException refused) {
            if (!isDefault) {
                throw refused;
            }
            LOG.debug("{} keeps the ACK timeout of rdma_cm", endpoint, refused);
        }
    }

    /** Soft RoCE keeps the kernel's: a virtual machine that is not scheduled answers late. */
    private boolean isRoceOfAnAdapter(Context context, CmId known) {
        return context.device().transportType() == TransportType.IB
                && context.driverFamily() != DriverFamily.SOFT_ROCE
                && linkLayer(known) == LinkLayer.ETHERNET;
    }

    /** The device is known. */
    private void prepare() {
        CmId known = VerbsEndpoint.required(id);
        Context context = known.device();
        if (context == null) {
            fail(new ConnectionException.Unreachable(attempt() + " failed: no device serves the address"));
            return;
        }
        int port = known.portNumber();
        InetSocketAddress local = known.localAddress();
        endpoint.execute(() -> endpoint.prepare0(context, port, local));
    }

    @Override
    QueuePair make(VerbsDevice device, ProtectionDomain domain, QueuePairOptions wanted) {
        return keep(device.createQueuePair(VerbsEndpoint.required(id), domain, wanted));
    }

    @Override
    void connectOrAccept(ConnectionParameters parameters) {
        if (isGivenUp()) {
            return;
        }
        CmId known = VerbsEndpoint.required(id);
        try {
            if (isAccepting) {
                isAnswered = true;
                known.accept(parameters);
            } else {
                isConnecting = true;
                connect(known, parameters);
            }
        } catch (RuntimeException refused) {
            isConnecting = false;
            fail(failureOf(refused));
        }
    }

    /** A message of the peer confirms the connection: rdma_notify(3). */
    @Override
    void confirm() {
        if (isGivenUp() || !isAnswered) {
            return;
        }
        try {
            VerbsEndpoint.required(id).notify(AsyncEventType.COMM_EST);
        } catch (RuntimeException late) {
            // Its confirmation has come meanwhile, or it has ended: an event reports that.
            LOG.debug("{} could not be notified of the first message", attempt(), late);
        }
    }

    private void connect(CmId known, ConnectionParameters parameters) {
        if (!isIwarp()) {
            known.connect(parameters);
            return;
        }
        submit(new BlockingCall(known, parameters));
    }

    /** Connects by a call that may block: of an adapter whose kernel driver makes a TCP connection meanwhile. */
    private final class BlockingCall extends BlockingConnects.Call {
        private final CmId known;
        private final ConnectionParameters parameters;

        BlockingCall(CmId known, ConnectionParameters parameters) {
            super(remoteAddress);
            this.known = known;
            this.parameters = parameters;
        }

        @Override
        boolean begin() {
            if (isGivenUp()) {
                callReturned(null);
                return false;
            }
            setStep("the kernel opens the TCP connection");
            try {
                ownChannel = loop().loop().leave(known);
                return true;
            } catch (RuntimeException refused) {
                callReturned(refused);
                return false;
            }
        }

        @Override
        void connect() {
            if (isGivenUp()) {
                execute(() -> callReturned(null));
                return;
            }
            try {
                known.connect(parameters);
                setStep("waiting for the peer to accept");
            } catch (Throwable refused) {
                execute(() -> callReturned(NativeFailures.unchecked(refused)));
            }
        }

        @Override
        void refused(RuntimeException why) {
            callReturned(why);
        }

        @Override
        void waiting(String reason) {
            setStep(reason);
        }
    }

    /** A call that may block has returned, or was not made. Unless it succeeded, no event will come. */
    private void callReturned(@Nullable RuntimeException refused) {
        isConnecting = false;
        isResolving = false;
        leaveOwnChannel();
        if (isOrphaned) {
            destroyOrphan();
        } else if (refused != null) {
            fail(failureOf(refused));
        } else if (isRouteKnown) {
            isRouteKnown = false;
            if (!isGivenUp()) {
                prepare();
            }
        }
    }

    /** The outcome is known, so nothing blocks any more. Not within an event of the channel. */
    private void leaveOwnChannel() {
        EventChannel own = ownChannel;
        CmId known = id;
        if (own == null || known == null) {
            return;
        }
        try {
            if (known.isClosed()) {
                loop().loop().closeOwn(own);
            } else {
                loop().loop().rejoin(known, own);
            }
            ownChannel = null;
        } catch (RuntimeException refused) {
            // It stays the id's, and is destroyed with it.
            LOG.warn("The event channel of {} could not be destroyed", endpoint, refused);
        }
    }

    // ---- what happens to the id: every type of event has an outcome

    /** On the loop of the id's channel, which may not be this part's yet, or not be it any more. */
    @Override
    public void onCmEvent(CmEvent event) {
        if (loop().isHere()) {
            guarded(() -> handle(event));
        } else {
            execute(() -> handle(event));
        }
    }

    private void handle(CmEvent event) {
        switch (event.type()) {
            case ADDR_RESOLVED, ROUTE_RESOLVED, ADDR_CHANGE -> {}
            default -> {
                isConnecting = false;
                if (isResolving) {
                    // The call returns, and continues with it.
                } else if (ownChannel != null) {
                    execute(this::leaveOwnChannel);
                }
                if (isOrphaned && !isResolving) {
                    destroyOrphan();
                    return;
                }
            }
        }
        switch (event.type()) {
            case ADDR_RESOLVED -> {
                if (!isGivenUp()) {
                    onDeviceKnown(event.id());
                }
            }
            case ROUTE_RESOLVED -> {
                if (isResolving) {
                    isRouteKnown = true;
                } else if (!isGivenUp()) {
                    prepare();
                }
            }
            case ESTABLISHED -> {
                if (setRnrTimer()) {
                    endpoint.execute(() -> endpoint.established0(event));
                }
            }
            case ADDR_ERROR, ROUTE_ERROR, CONNECT_ERROR, UNREACHABLE, REJECTED, CONNECT_RESPONSE -> {
                isDisconnectSeen = true;
                endpoint.execute(() -> endpoint.drain(failureOf(event)));
            }
            case DISCONNECTED -> {
                onPeerGone();
                endpoint.execute(() -> endpoint.disconnected0(event));
            }
            case TIMEWAIT_EXIT -> onPeerGone();
            case DEVICE_REMOVAL -> {
                onPeerGone();
                endpoint.onDeviceRemoval();
                provider.devices().findRemoved();
            }
            case ADDR_CHANGE ->
                // Bonding failed over: if the connection is dead its retries run out, and the completion shows that.
                LOG.warn("{}: the network address of its device changed", endpoint);
            case CONNECT_REQUEST, MULTICAST_JOIN, MULTICAST_ERROR, UNKNOWN ->
                LOG.warn("{}: unexpected event: {}", endpoint, event.describe());
        }
    }

    /** rdma_cm cannot set it and leaves 655 ms, so it is set when rdma_cm is done with the queue pair. */
    private boolean setRnrTimer() {
        QueuePair made = queuePair();
        boolean isDefault = options.minRnrTimerMicros() == EndpointOptions.DEVICE_DEFAULT;
        if (made == null || isGivenUp() || (isDefault && isIwarp())) {
            return true;
        }
        try {
            made.modify(QueuePairAttributes.to(QueuePairState.RTS)
                    .minRnrTimer(isDefault ? RnrTimer.DEFAULT_CODE : RnrTimer.code(options.minRnrTimerMicros()))
                    .build());
            return true;
        } catch (NativeRdmaException refused) {
            if (isDefault) {
                LOG.debug("{} keeps the RNR timer of rdma_cm", endpoint, refused);
                return true;
            }
            fail(failureOf(refused));
            return false;
        }
    }

    private void onPeerGone() {
        isDisconnectSeen = true;
        if (isDone) {
            closeId();
        }
    }

    // ---- the end

    @Override
    void notifyPeer(boolean isConnected, byte[] rejection) {
        CmId known = id;
        try {
            if (known != null && isConnected) {
                known.disconnect();
            } else if (known != null && isAccepting && !isAnswered) {
                isAnswered = true;
                known.reject(rejection);
            }
        } catch (NativeRdmaException alreadyDown) {
            // No answer comes to a request that was not sent.
            isDisconnectSeen = true;
            LOG.debug("{}: {}", endpoint, alreadyDown.getMessage());
        }
    }

    /**
     * Destroys the queue pair, and the id when the peer has answered.
     *
     * @param wasConnected whether there is an answer to wait for
     */
    @Override
    void destroy(boolean wasConnected) {
        if (call != null && loop().loop().blockingConnects().cancel(call)) {
            isConnecting = false;
        }
        if (isResolving) {
            isOrphaned = true;
            endpoint.execute(() -> endpoint.finish0(true));
            return;
        }
        if (isConnecting && queuePair() != null && isIwarp()) {
            // The kernel holds the queue pair and the id of an iWARP connection until the peer has answered, or for ten
            // seconds, and would hold this thread as well. In its error state the queue pair has given everything back.
            isOrphaned = true;
            endpoint.execute(() -> endpoint.finish0(false));
            return;
        }
        closeQueuePair(isGone -> {
            endpoint.execute(() -> endpoint.finish0(isGone));
            isDone = true;
            if (isDisconnectSeen || !wasConnected) {
                closeId();
            } else {
                loop().loop().loop().schedule(this::closeId, LINGER_MILLIS, TimeUnit.MILLISECONDS);
            }
        });
    }

    private void destroyOrphan() {
        isOrphaned = false;
        closeQueuePair(isGone -> {
            if (isGone) {
                endpoint.execute(endpoint::releaseCompletions0);
            }
            closeId();
        });
    }

    private void closeId() {
        CmId known = id;
        if (known != null && !known.isClosed()) {
            try {
                known.close();
            } catch (RuntimeException refused) {
                LOG.warn("The id of {} could not be destroyed", endpoint, refused);
            }
        }
        if (ownChannel != null) {
            execute(this::leaveOwnChannel); // this may be within an event of it
        }
    }

    private boolean isIwarp() {
        return VerbsEndpoint.required(queuePair()).domain().context().device().transportType() == TransportType.IWARP;
    }
}
