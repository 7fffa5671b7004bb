package org.verbena.transport.verbs;

import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.queue.QueuePairState;

/**
 * An endpoint's part on the connection loop: its id, and the life of its queue pair. The drawing is at {@link VerbsEndpoint}.
 *
 * <p>The connection loop's thread alone, unless noted otherwise. The endpoint asks for each step with {@link #execute},
 * in order, so none meets an object that another one closes; the results go to the endpoint's loop.
 */
final class ConnectionSetup implements CmEventSink {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionSetup.class);

    /**
     * How long an id waits at the most for the peer's answer to its disconnect request, which the kernel repeats
     * meanwhile: a peer that is idle would not learn of the end if the only request were lost.
     */
    private static final long LINGER_MILLIS = 60_000;

    private final VerbsEndpoint endpoint;
    private final VerbsProvider provider;
    private final EndpointOptions options;
    private final InetSocketAddress remoteAddress;
    private final boolean isAccepting;

    /** Set by the endpoint's loop when it drains: steps of connecting that are still to come are left out. */
    private volatile boolean givenUp;

    /** What is being done, for the message of a failure. Written by both loops, in turns. */
    private volatile String step = "starting";

    private @Nullable CmId id;
    private @Nullable QueuePair queuePair;

    /** A connection request was accepted or rejected. */
    private boolean isAnswered;

    /** The connect call was made, and no outcome has come. */
    private boolean isConnecting;

    /** The endpoint is gone, and the queue pair waits for the outcome of its connect. */
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
            @Nullable CmId bound) {
        this.endpoint = endpoint;
        this.provider = provider;
        this.options = options;
        this.remoteAddress = remoteAddress;
        isAccepting = request != null;
        id = request == null ? bound : request.id();
    }

    // ---- any thread

    /**
     * Does a step on the connection loop.
     *
     * @throws NativeRdmaException there is no connection loop, for there is no device
     */
    void execute(Runnable stepOfThis) {
        provider.connectionLoop().loop().execute(stepOfThis);
    }

    /** Leaves out what is still to come of connecting. */
    void giveUp() {
        givenUp = true;
    }

    void setStep(String what) {
        step = what;
    }

    String step() {
        return step;
    }

    /** The current step and the peer, for messages. */
    String attempt() {
        return (isAccepting ? "accepting " : "connecting to ") + VerbsProvider.format(remoteAddress);
    }

    Throwable failureOf(RuntimeException refused) {
        return ConnectFailures.of(attempt() + " failed while " + step, refused);
    }

    Throwable failureOf(CmEvent event) {
        return ConnectFailures.of(attempt() + " failed while " + step, event);
    }

    private void fail(Throwable cause) {
        endpoint.execute(() -> endpoint.refuse0(cause));
    }

    // ---- connecting and accepting

    /** Starts to resolve address and route, or takes those of the request. */
    void begin() {
        if (givenUp) {
            return;
        }
        if (isAccepting) {
            prepare();
            return;
        }
        step = "resolving the address";
        try {
            CmId made = id;
            if (made == null) {
                made = provider.connectionLoop().newId(this);
                id = made;
            } else {
                provider.connectionLoop().join(made, this);
            }
            if (options.trafficClass() != 0) {
                made.setTypeOfService(options.trafficClass());
            }
            made.resolveAddress(null, remoteAddress, options.connectTimeoutMillis());
        } catch (RuntimeException refused) {
            fail(failureOf(refused));
        }
    }

    private void resolveRoute(CmId known) {
        step = "resolving the route";
        try {
            known.resolveRoute(options.connectTimeoutMillis());
        } catch (RuntimeException refused) {
            fail(failureOf(refused));
        }
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

    void createQueuePair(VerbsDevice device, QueuePairOptions wanted) {
        if (givenUp) {
            return;
        }
        try {
            QueuePair made = device.createQueuePair(VerbsEndpoint.required(id), wanted);
            queuePair = made;
            endpoint.execute(() -> endpoint.prepared0(made));
        } catch (RuntimeException refused) {
            fail(failureOf(refused));
        }
    }

    void connectOrAccept(ConnectionParameters parameters) {
        if (givenUp) {
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
    void confirm() {
        if (givenUp || !isAnswered) {
            return;
        }
        try {
            VerbsEndpoint.required(id).notify(AsyncEventType.COMM_EST);
        } catch (RuntimeException late) {
            // Its confirmation has come meanwhile, or it has ended: an event says so.
            LOG.debug("{} was not told of the first message", attempt(), late);
        }
    }

    private void connect(CmId known, ConnectionParameters parameters) {
        if (!isIwarp()) {
            known.connect(parameters);
            return;
        }
        BlockingConnects.Call made = new BlockingCall(known, parameters);
        call = made;
        provider.connectionLoop().blockingConnects().submit(made);
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
            if (givenUp) {
                connectRefused(null);
                return false;
            }
            step = "the kernel opens the TCP connection";
            try {
                ownChannel = provider.connectionLoop().leave(known);
                return true;
            } catch (RuntimeException refused) {
                connectRefused(refused);
                return false;
            }
        }

        @Override
        void connect() {
            if (givenUp) {
                execute(() -> connectRefused(null));
                return;
            }
            try {
                known.connect(parameters);
                step = "waiting for the peer to accept";
            } catch (RuntimeException refused) {
                execute(() -> connectRefused(refused));
            }
        }

        @Override
        void waiting(String reason) {
            step = reason;
        }
    }

    /** The call itself failed, or was not made: no event will come. */
    private void connectRefused(@Nullable RuntimeException refused) {
        isConnecting = false;
        leaveOwnChannel();
        if (isOrphaned) {
            destroyOrphan();
        } else if (refused != null) {
            fail(failureOf(refused));
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
                provider.connectionLoop().closeOwn(own);
            } else {
                provider.connectionLoop().rejoin(known, own);
            }
            ownChannel = null;
        } catch (RuntimeException refused) {
            // It stays the id's, and is destroyed with it.
            LOG.warn("The event channel of {} could not be destroyed", endpoint, refused);
        }
    }

    // ---- what happens to the id: every type of event has an outcome

    @Override
    public void onCmEvent(CmEvent event) {
        switch (event.type()) {
            case ADDR_RESOLVED, ROUTE_RESOLVED, ADDR_CHANGE -> {}
            default -> {
                isConnecting = false;
                if (ownChannel != null) {
                    execute(this::leaveOwnChannel);
                }
                if (isOrphaned) {
                    destroyOrphan();
                    return;
                }
            }
        }
        switch (event.type()) {
            case ADDR_RESOLVED -> {
                if (!givenUp) {
                    resolveRoute(event.id());
                }
            }
            case ROUTE_RESOLVED -> {
                if (!givenUp) {
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
                provider.devices().lookForRemoved();
            }
            case ADDR_CHANGE ->
                // Bonding failed over: if the connection is dead its retries run out, and the completion says so.
                LOG.warn("{}: the network address of its device changed", endpoint);
            case CONNECT_REQUEST, MULTICAST_JOIN, MULTICAST_ERROR, UNKNOWN ->
                LOG.warn("{}: unexpected event: {}", endpoint, event.describe());
        }
    }

    /** rdma_cm has no word for it, so it is set when rdma_cm is done with the queue pair. */
    private boolean setRnrTimer() {
        QueuePair made = queuePair;
        if (options.minRnrTimerMicros() == EndpointOptions.DEVICE_DEFAULT || made == null || givenUp) {
            return true;
        }
        try {
            made.modify(QueuePairAttributes.to(QueuePairState.RTS)
                    .minRnrTimer(RnrTimer.code(options.minRnrTimerMicros()))
                    .build());
            return true;
        } catch (NativeRdmaException refused) {
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

    /**
     * Notifies the peer, and moves the queue pair to its error state, so that it returns all work.
     *
     * @param isConnected whether there is a peer to notify
     * @param rejection the answer to a peer whose request to connect was not answered yet
     */
    void toErrorState(boolean isConnected, byte[] rejection) {
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
        QueuePair made = queuePair;
        if (made != null) {
            try {
                made.modify(QueuePairAttributes.to(QueuePairState.ERR).build());
            } catch (NativeRdmaException refused) {
                LOG.debug("{}: {}", endpoint, refused.getMessage());
            }
        }
        endpoint.execute(endpoint::inErrorState0);
    }

    /**
     * Destroys the queue pair, and the id when the peer has answered.
     *
     * @param wasConnected whether there is an answer to wait for
     */
    void destroy(boolean wasConnected) {
        if (call != null && provider.connectionLoop().blockingConnects().cancel(call)) {
            isConnecting = false;
        }
        if (isConnecting && queuePair != null && isIwarp()) {
            // The kernel holds the queue pair and the id of an iWARP connection until the peer has answered, or for ten
            // seconds, and would hold this thread as well. In its error state the queue pair has given everything back.
            isOrphaned = true;
            endpoint.execute(() -> endpoint.finish0(false));
            return;
        }
        boolean isGone = closeQueuePair();
        endpoint.execute(() -> endpoint.finish0(isGone));
        isDone = true;
        if (isDisconnectSeen || !wasConnected) {
            closeId();
        } else {
            provider.connectionLoop().loop().schedule(this::closeId, LINGER_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    private void destroyOrphan() {
        isOrphaned = false;
        if (closeQueuePair()) {
            endpoint.execute(endpoint::releaseCompletions0);
        }
        closeId();
    }

    private boolean closeQueuePair() {
        QueuePair made = queuePair;
        if (made == null) {
            return true;
        }
        endpoint.endWindows();
        try {
            made.close();
            return true;
        } catch (RuntimeException refused) {
            LOG.error(
                    "The queue pair of {} could not be destroyed; the memory of its work requests stays registered",
                    endpoint,
                    refused);
            return false;
        }
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
        if (ownChannel != null && !isConnecting) {
            execute(this::leaveOwnChannel); // this may be within an event of it
        }
    }

    private boolean isIwarp() {
        return VerbsEndpoint.required(queuePair).domain().context().device().transportType() == TransportType.IWARP;
    }
}
