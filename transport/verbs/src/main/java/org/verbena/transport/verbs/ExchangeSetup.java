package org.verbena.transport.verbs;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.ConnectionParameters;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.QueuePairRoute;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairState;

/**
 * The setup of an endpoint without rdma_cm: the queue pair goes from RESET to INIT here, the user's exchange passes
 * each end to the other, and then it goes to RTR and RTS. There is no id, and no event when the peer ends.
 *
 * <pre>{@code
 *   connection loop                       completion loop
 *   begin: finds the device
 *   findPort: port, GID
 *                                         prepare0
 *   make: RESET, INIT
 *                                         prepared0: receives
 *   connectOrAccept: this end
 *                                         exchange.exchange(own)
 *   connect: RTR, RTS
 *                                         exchange.ready()
 *                                         connected0
 * }</pre>
 */
final class ExchangeSetup extends EndpointSetup {
    private static final Logger LOG = LoggerFactory.getLogger(ExchangeSetup.class);

    /**
     * The most repeats of a packet without an answer. Soft RoCE retries forever with 7, and where no connection manager
     * reports that the peer is gone, a send would wait forever.
     */
    private static final int MAX_RETRIES = 6;

    private static final int MAX_24_BITS = 0xffffff;

    /** As many as a packet may pass with rdma_cm. */
    private static final int HOP_LIMIT = 64;

    private final VerbsEndpoint endpoint;
    private final QueuePairRoute route;
    private final QueuePairExchange exchange;
    private final EndpointOptions options;

    // The connection loop's, from begin on.
    private @Nullable LocalPort local;

    /** The peer as messages name it. Written by the connection loop, once. */
    private volatile @Nullable String peer;

    /** The exchange has succeeded, or knows that it is given up. The endpoint's loop. */
    private boolean isExchangeOver;

    ExchangeSetup(
            VerbsEndpoint endpoint,
            VerbsProvider provider,
            QueuePairRoute route,
            QueuePairExchange exchange,
            EndpointOptions options) {
        super(endpoint, new SetupLoop(provider));
        this.endpoint = endpoint;
        this.route = route;
        this.exchange = exchange;
        this.options = options;
    }

    @Override
    String attempt() {
        return "connecting a queue pair by hand on " + route;
    }

    @Override
    String waiting() {
        return "the peer's end is exchanged";
    }

    @Override
    String peer() {
        String known = peer;
        return known == null ? "a peer that is not known yet, by hand on " + route : known;
    }

    @Override
    boolean peerTakesWrites() {
        return false;
    }

    @Override
    boolean reportsPeerEnd() {
        return false;
    }

    /** On the endpoint's loop, like everything that calls the exchange. */
    @Override
    void giveUp() {
        super.giveUp();
        if (!isExchangeOver) {
            isExchangeOver = true;
            try {
                exchange.giveUp();
            } catch (Throwable thrown) {
                LOG.warn("{}: giveUp of its exchange threw", attempt(), thrown);
            }
        }
    }

    @Override
    void begin() {
        if (isGivenUp()) {
            return;
        }
        setStep("finding the device");
        Context context = LocalPort.deviceOf(route);
        loop().moveTo(context, null);
        execute(() -> findPort(context));
    }

    private void findPort(Context device) {
        if (isGivenUp()) {
            return;
        }
        LocalPort found = LocalPort.of(device, route);
        local = found;
        InetAddress address = found.gid().toInetAddress();
        InetSocketAddress here =
                VerbsProvider.orWildcard(found.gid().isZero() ? null : new InetSocketAddress(address, 0));
        endpoint.execute(() -> endpoint.prepare0(device, found.port(), here));
    }

    @Override
    QueuePair make(VerbsDevice device, ProtectionDomain domain, QueuePairOptions wanted) {
        QueuePair made = keep(device.createQueuePair(domain, wanted));
        made.modify(QueuePairAttributes.to(QueuePairState.INIT)
                .pkeyIndex(route.pkeyIndex())
                .portNumber(VerbsEndpoint.required(local).port())
                .accessFlags(AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE, AccessFlag.REMOTE_ATOMIC)
                .build());
        return made;
    }

    // ---- the exchange

    @Override
    void connectOrAccept(ConnectionParameters parameters) {
        if (isGivenUp()) {
            return;
        }
        LocalPort found = VerbsEndpoint.required(local);
        QueuePairEnd proposed = new QueuePairEnd(
                VerbsEndpoint.required(queuePair()).number(),
                ThreadLocalRandom.current().nextInt(MAX_24_BITS + 1),
                found.lid(),
                found.gid().subnetPrefix(),
                found.gid().interfaceId(),
                found.mtu().bytes(),
                parameters.responderResources(),
                options.privateData());
        endpoint.execute(() -> exchange0(proposed, parameters));
    }

    /** The endpoint's loop, as all that follows with a 0. */
    private void exchange0(QueuePairEnd proposed, ConnectionParameters parameters) {
        if (isGivenUp()) {
            return;
        }
        MemoryDomain memory = endpoint.memoryDomain();
        QueuePairEnd own;
        CompletionStage<QueuePairEnd> exchanged;
        try {
            own = exchange.adapt(proposed);
            exchanged = exchange.exchange(own, memory);
        } catch (Throwable thrown) {
            endpoint.refuse0(ofExchange(thrown));
            return;
        }
        exchanged.whenComplete((its, failure) -> {
            if (failure != null || its == null) {
                fail(ofExchange(failure != null ? failure : new NullPointerException("the exchange gave no end")));
            } else {
                next(() -> connect(own, its, parameters));
            }
        });
    }

    /** Continues on the connection loop. Any thread. */
    private void next(Runnable step) {
        try {
            execute(step);
        } catch (RuntimeException ended) {
            fail(failureOf(ended));
        }
    }

    /** The connection loop. */
    private void connect(QueuePairEnd own, QueuePairEnd its, ConnectionParameters parameters) {
        if (isGivenUp()) {
            return;
        }
        setStep("connecting to the peer's " + its);
        LocalPort found = VerbsEndpoint.required(local);
        Gid gid = new Gid(its.gidPrefix(), its.gidInterface());
        AddressVector vector = vectorTo(found, gid, its.lid());
        Mtu mtu = Mtu.ofBytes(Math.min(own.mtuBytes(), its.mtuBytes()));
        int reads = Math.min(parameters.initiatorDepth(), its.readDepth());
        QueuePair made = VerbsEndpoint.required(queuePair());
        made.modify(QueuePairAttributes.to(QueuePairState.RTR)
                .pathMtu(mtu)
                .destinationQueuePair(its.queuePairNumber())
                .receivePsn(its.packetSequenceNumber())
                .maxReadsAsTarget(own.readDepth())
                .minRnrTimer(
                        options.minRnrTimerMicros() == EndpointOptions.DEVICE_DEFAULT
                                ? RnrTimer.DEFAULT_CODE
                                : RnrTimer.code(options.minRnrTimerMicros()))
                .address(vector)
                .build());
        made.modify(QueuePairAttributes.to(QueuePairState.RTS)
                .sendPsn(own.packetSequenceNumber())
                .timeout(AckTimeout.exponent(options.ackTimeoutMicros(), AckTimeout.BY_HAND_EXPONENT))
                .retryCount(Math.min(options.retryCount(), MAX_RETRIES))
                .rnrRetryCount(options.rnrRetryCount())
                .maxReadsAsInitiator(reads)
                .build());
        InetSocketAddress there =
                VerbsProvider.orWildcard(gid.isZero() ? null : new InetSocketAddress(gid.toInetAddress(), 0));
        peer = (gid.isZero() ? "LID " + its.lid() : there.getAddress().getHostAddress()) + " queue pair "
                + its.queuePairNumber();
        endpoint.execute(() -> ready0(there, its, reads));
    }

    private AddressVector vectorTo(LocalPort found, Gid gid, int lid) {
        if (found.isEthernet() && gid.isZero()) {
            throw new ConnectionException(
                    attempt() + " failed: the peer gave no GID, and on Ethernet routes go by GID");
        }
        GlobalRoute global = gid.isZero() || found.gidIndex() < 0
                ? null
                : new GlobalRoute(gid, found.gidIndex(), HOP_LIMIT, options.trafficClass(), 0);
        return new AddressVector(found.port(), global, lid, route.serviceLevel(), 0, 0);
    }

    private void ready0(InetSocketAddress there, QueuePairEnd its, int reads) {
        if (isGivenUp()) {
            return;
        }
        setStep("waiting until the peer is connected as well");
        CompletionStage<Void> ready;
        try {
            ready = exchange.ready();
        } catch (Throwable thrown) {
            endpoint.refuse0(ofExchange(thrown));
            return;
        }
        ready.whenComplete((nothing, failure) -> {
            if (failure != null) {
                fail(ofExchange(failure));
            } else {
                endpoint.execute(() -> {
                    if (!isGivenUp()) {
                        isExchangeOver = true;
                        endpoint.connectedByHand0(there, reads, its.privateData());
                    }
                });
            }
        });
    }

    /** The exception of the connection for a failure of the exchange. */
    private Throwable ofExchange(Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        return cause instanceof ConnectionException
                ? cause
                : new ConnectionException(
                        attempt() + " failed while " + step() + ": "
                                + (cause.getMessage() == null ? cause.toString() : cause.getMessage()),
                        cause);
    }

    // ---- the end

    @Override
    void notifyPeer(byte[] rejection) {
        // Nothing can be sent: the peer notices only that the queue pair does not answer.
    }

    @Override
    void destroy() {
        closeQueuePair(isGone -> endpoint.execute(() -> endpoint.finish0(isGone)));
    }
}
