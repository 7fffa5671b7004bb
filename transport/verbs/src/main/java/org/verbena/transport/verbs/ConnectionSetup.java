package org.verbena.transport.verbs;

import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.verbs.ConnectionState.Event;
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
 * The setup of an endpoint with rdma_cm: its id, and the events of it. {@link ConnectionState} has the table.
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

    private ConnectionState state;
    private @Nullable CmId id;
    private @Nullable LinkLayer linkLayer;

    /** The last call that may block, until it has returned and the id is back on the channel of its loop. */
    private @Nullable OwnCall call;

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
        state = isAccepting ? ConnectionState.PREPARING : ConnectionState.NEW;
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

    // ---- the state

    /**
     * An event happens, which the table has in this state.
     *
     * @throws IllegalStateException it does not: a mistake of this provider
     */
    private void take(Event event) {
        ConnectionState from = state;
        ConnectionState to = from.after(event);
        if (to == null) {
            LOG.error("{} is in state {}, which has no {}", endpoint, from, event);
            throw new IllegalStateException(attempt() + ": " + event + " in state " + from);
        }
        LOG.trace("{}: {} in state {}: {}", endpoint, event, from, to);
        if (from == to) {
            return;
        }
        state = to;
        switch (to) {
            case DOWN -> giveUp();
            case ENDING -> {
                if (from == ConnectionState.ROUTE_ORPHAN || from == ConnectionState.ORPHAN) {
                    closeQueuePair(isGone -> {
                        if (isGone) {
                            endpoint.execute(endpoint::releaseCompletions0);
                        }
                        take(Event.DESTROYED);
                    });
                }
            }
            case LINGERING -> {
                try {
                    loop().loop().loop().schedule(() -> take(Event.LINGERED), LINGER_MILLIS, TimeUnit.MILLISECONDS);
                } catch (Throwable refused) { // an id that waits without a limit may never be closed
                    LOG.debug("{} does not wait for the peer's answer", endpoint, refused);
                    take(Event.LINGERED);
                }
            }
            case GONE -> closeId();
            default -> {}
        }
    }

    /** The same for an event of rdma_cm; false if it is none of this state, and means nothing. */
    private boolean takes(Event event, CmEvent reported) {
        if (state.after(event) == null) {
            LOG.warn("{}: unexpected event in state {}: {}", endpoint, state, reported.describe());
            return false;
        }
        take(event);
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
            setAckTimeout(VerbsEndpoint.required(id));
            prepare();
            return;
        }
        take(Event.BEGIN);
        setStep("resolving the address");
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
    }

    /** The address is resolved: goes on where its device may block. */
    private void onDeviceKnown(CmId known) {
        Context device = known.device();
        if (device != null) {
            loop().moveTo(device, known);
        }
        execute(() -> resolveRoute(known));
    }

    /**
     * On InfiniBand, and on RoCE just as well, librdmacm first asks ibacm where that runs, over a socket, without a
     * timeout and one thread at a time (rdma-core 65, librdmacm/cma.c, rdma_resolve_route, ucma_set_ib_route; acm.c,
     * ucma_ib_resolve).
     */
    private void resolveRoute(CmId known) {
        if (state != ConnectionState.ROUTE) {
            return;
        }
        String what = "resolving the route";
        setStep(what);
        setAckTimeout(known); // the kernel puts it into the path, and so into what it asks the peer for
        Context device = known.device();
        if (device != null && device.device().transportType() == TransportType.IB) {
            submit(new OwnCall(known, what, () -> known.resolveRoute(options.connectTimeoutMillis())));
        } else {
            known.resolveRoute(options.connectTimeoutMillis());
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

    private void submit(OwnCall made) {
        call = made;
        loop().loop().blockingConnects().submit(made);
    }

    /**
     * A call that may block. Meanwhile the id has an event channel of its own, since one call at a time is made on a
     * channel.
     */
    private final class OwnCall extends BlockingConnects.Call {
        private final CmId known;
        private final String what;
        private final Runnable made;
        private final ArrayDeque<CmEvent> reported = new ArrayDeque<>();
        private @Nullable EventChannel channel;

        OwnCall(CmId known, String what, Runnable made) {
            super(remoteAddress);
            this.known = known;
            this.what = what;
            this.made = made;
        }

        @Override
        boolean begin() {
            if (isGivenUp()) {
                return false;
            }
            take(Event.CALL);
            setStep(what);
            try {
                channel = loop().loop().leave(known);
                return true;
            } catch (RuntimeException refused) {
                returned(refused);
                return false;
            }
        }

        @Override
        void connect() {
            try {
                made.run();
                execute(() -> returned(null));
            } catch (Throwable refused) {
                execute(() -> returned(NativeFailures.unchecked(refused)));
            }
        }

        @Override
        void refused(RuntimeException why) {
            returned(why);
        }

        @Override
        void waiting(String reason) {
            setStep(reason);
        }

        /** It has returned, or was not made. Unless it succeeded, no event will come. */
        private void returned(@Nullable RuntimeException refused) {
            leaveChannel();
            take(Event.RETURNED);
            if (refused != null) {
                take(Event.OVER);
                fail(failureOf(refused));
            }
            reported.forEach(ConnectionSetup.this::handle);
        }

        /** Not within an event of the channel. */
        private void leaveChannel() {
            EventChannel own = channel;
            if (own == null) {
                return;
            }
            try {
                if (known.isClosed()) {
                    loop().loop().closeOwn(own);
                } else {
                    loop().loop().rejoin(known, own);
                }
                channel = null;
                call = null;
            } catch (RuntimeException refused) {
                // The channel stays with the id, and is destroyed with it.
                LOG.warn("The event channel of {} could not be destroyed", endpoint, refused);
            }
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
        take(Event.CONNECT);
        CmId known = VerbsEndpoint.required(id);
        if (isAccepting) {
            known.accept(parameters);
        } else if (isIwarp()) {
            // The kernel's driver of iWARP makes a TCP connection within the call.
            submit(new OwnCall(known, "the kernel opens the TCP connection", () -> {
                known.connect(parameters);
                setStep(waiting());
            }));
        } else {
            known.connect(parameters);
        }
    }

    /** A message of the peer confirms the connection: rdma_notify(3). */
    @Override
    void confirm() {
        if (isGivenUp() || state != ConnectionState.CONNECTING) {
            return;
        }
        try {
            VerbsEndpoint.required(id).notify(AsyncEventType.COMM_EST);
        } catch (RuntimeException late) {
            // The confirmation has come meanwhile, or the connection has ended: an event reports that.
            LOG.debug("{} could not be notified of the first message", attempt(), late);
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
        if (event.type() == CmEventType.DEVICE_REMOVAL) {
            endpoint.onDeviceRemoval();
            provider.devices().findRemoved();
        }
        if (call != null && state.isInCall()) {
            call.reported.add(event);
            return;
        }
        switch (event.type()) {
            case ADDR_RESOLVED -> {
                if (takes(Event.ADDR_RESOLVED, event) && state == ConnectionState.ROUTE) {
                    onDeviceKnown(event.id());
                }
            }
            case ROUTE_RESOLVED -> {
                if (takes(Event.ROUTE_RESOLVED, event) && state == ConnectionState.PREPARING) {
                    prepare();
                }
            }
            case ESTABLISHED -> {
                if (takes(Event.ESTABLISHED, event) && state == ConnectionState.UP && setRnrTimer()) {
                    endpoint.execute(() -> endpoint.established0(event));
                }
            }
            case ADDR_ERROR, ROUTE_ERROR, CONNECT_ERROR, UNREACHABLE, REJECTED, CONNECT_RESPONSE -> {
                takes(Event.OVER, event);
                endpoint.execute(() -> endpoint.drain(failureOf(event)));
            }
            case DISCONNECTED -> {
                takes(Event.OVER, event);
                endpoint.execute(() -> endpoint.disconnected0(event));
            }
            case TIMEWAIT_EXIT -> takes(Event.TIMEWAIT_EXIT, event);
            case DEVICE_REMOVAL -> takes(Event.OVER, event);
            case ADDR_CHANGE ->
                // Bonding failed over: if the connection is dead its retries run out, and the completion shows that.
                LOG.warn("{}: the network address of its device changed", endpoint);
            case CONNECT_REQUEST, MULTICAST_JOIN, MULTICAST_ERROR, UNKNOWN ->
                LOG.warn("{}: unexpected event in state {}: {}", endpoint, state, event.describe());
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

    // ---- the end

    @Override
    void notifyPeer(byte[] rejection) {
        ConnectionState before = state;
        take(Event.NOTIFY);
        try {
            if (before == ConnectionState.UP) {
                VerbsEndpoint.required(id).disconnect();
            } else if (before == ConnectionState.PREPARING && isAccepting) {
                VerbsEndpoint.required(id).reject(rejection);
            }
        } catch (NativeRdmaException alreadyDown) {
            // No answer comes to a request that was not sent.
            take(Event.OVER);
            LOG.debug("{}: {}", endpoint, alreadyDown.getMessage());
        }
    }

    /** Destroys the queue pair, and the id when the peer has answered. */
    @Override
    void destroy() {
        if (call != null) {
            loop().loop().blockingConnects().cancel(call);
        }
        take(Event.DESTROY);
        switch (state) {
            case ROUTE_ORPHAN -> endpoint.execute(() -> endpoint.finish0(true));
            case CONNECT_ORPHAN, ORPHAN ->
                // The kernel holds the queue pair and the id of an iWARP connection until the peer has answered, or for
                // ten seconds, and would hold this thread as well. In its error state the queue pair has given
                // everything back.
                endpoint.execute(() -> endpoint.finish0(false));
            default ->
                closeQueuePair(isGone -> {
                    endpoint.execute(() -> endpoint.finish0(isGone));
                    take(Event.DESTROYED);
                });
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
        if (call != null) {
            execute(call::leaveChannel); // this may be within an event of it
        }
    }

    private boolean isIwarp() {
        return VerbsEndpoint.required(queuePair()).domain().context().device().transportType() == TransportType.IWARP;
    }
}
