package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.ConnectionParameters;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RdmaException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairOptions;

/**
 * One connection: an id of the connection manager and its queue pair.
 *
 * <pre>{@code
 *             completion loop                               connection loop
 *
 *   NEW       start0 ------------------------------------->  create id, resolve address (a request has an id)
 *   RESOLVING                                                ADDR_RESOLVED: resolve route
 *             prepare0: reserve completions  <-------------  ROUTE_RESOLVED
 *   PREPARING                                ------------->  create the queue pair
 *             prepared0: onPrepared, receives <------------
 *   PREPARED                                 ------------->  connect, or accept
 *             established0: onConnected      <-------------  ESTABLISHED
 *   CONNECTED ... completions ...
 *             drain(cause), from any state   ------------->  disconnect, queue pair to its error state
 *   DRAINING  completions, flushed           <-------------
 *             all are back, or silence       ------------->  destroy the queue pair
 *             finish0: onDisconnected        <-------------
 *   CLOSED                                                   DISCONNECTED, or a while later: destroy the id
 * }</pre>
 *
 * <p>The left column is this class: everything in it runs on the completion loop, and so do posting and polling. The
 * right column is {@link ConnectionSetup}, on the connection loop; {@link ExchangeSetup} has its place where queue
 * pairs are connected by hand.
 *
 * <p>Its resources on the device are in {@link EndpointResources}; its work goes through {@link SendPath} and {@link
 * ReceivePath} and comes back by {@link CompletionReports}; {@link Draining} tracks its end.
 */
final class VerbsEndpoint extends QueuePairEndpoint implements Endpoint {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsEndpoint.class);

    private static final byte[] NOTHING = {};

    /** As drawn above. */
    enum State {
        NEW,
        RESOLVING,
        PREPARING,
        PREPARED,
        CONNECTED,
        DRAINING,
        CLOSED
    }

    private final VerbsProvider provider;
    private final EndpointOptions options;
    private final EndpointHandler handler;
    private final EndpointSetup setup;

    /** Written by the loop when a peer by hand is known; read by any thread. */
    private volatile InetSocketAddress remoteAddress;

    /** The connection request that is accepted, null when connecting. */
    private final @Nullable CmEvent request;

    /** Written before it starts, or by the loop when it is prepared; read by any thread then. */
    private volatile @Nullable InetSocketAddress localAddress;

    // ---- only the loop's thread, from here on

    private State state = State.NEW;
    private @Nullable Future<?> timeout;
    private @Nullable CmEvent endedBefore;
    private @Nullable EndpointCapabilities capabilities;

    /** The operations that exist here, as {@link PostChecks#operations} has them. */
    private Set<WorkRequest.Opcode> operations = Set.of();

    private @Nullable VerbsMemoryDomain domain;

    private @Nullable Throwable cause;

    /** The device reported that it gave up, but not why. */
    private boolean isCauseVague;

    private boolean wasConnected;
    private boolean isLocalEnd;

    private final CompletionReports reports;
    private final ReceivePath receives;
    private final EndpointResources resources;

    /** Empty until the device is known. */
    private SendPath sends;

    /**
     * For {@link VerbsEndpoints}.
     *
     * @param request what is accepted; null for an endpoint that connects
     * @param localAddress null until it is known
     * @param meeting makes the setup with the peer
     */
    VerbsEndpoint(
            VerbsProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            @Nullable CmEvent request,
            @Nullable InetSocketAddress localAddress,
            Function<VerbsEndpoint, EndpointSetup> meeting) {
        super(loop);
        this.provider = provider;
        this.options = options;
        this.handler = handler;
        this.remoteAddress = remoteAddress;
        this.request = request;
        this.localAddress = localAddress;
        setup = meeting.apply(this);
        reports = new CompletionReports(this, options, handler);
        sends = reports.sends();
        receives = reports.receives();
        resources = new EndpointResources(options, reports);
    }

    /** Receives the events of the id. */
    CmEventSink cmEventSink() {
        return (CmEventSink) setup;
    }

    /** Takes an event that ended the request before it was accepted; before {@link #start}. */
    void endedBeforeAccepted(CmEvent event) {
        endedBefore = event;
    }

    boolean peerTakesWrites() {
        return setup.peerTakesWrites();
    }

    /** What it is, in words. */
    String connection() {
        InetSocketAddress local = localAddress;
        return request == null
                ? "the connection to " + setup.peer()
                : "the connection from " + setup.peer() + (local == null ? "" : " to " + VerbsProvider.format(local));
    }

    // ---- connecting

    @Override
    void start0() {
        membership.join0();
        state = State.RESOLVING;
        timeout = loop.schedule(
                () -> drain(new ConnectionException.TimedOut(setup.attempt() + " took longer than "
                        + options.connectTimeoutMillis() + " ms, while " + setup.step())),
                options.connectTimeoutMillis(),
                TimeUnit.MILLISECONDS);
        CmEvent before = endedBefore;
        if (before != null) {
            drain(setup.failureOf(before));
            return;
        }
        try {
            setup.execute(setup::begin);
        } catch (RuntimeException unavailable) {
            drain(new ConnectionException.Unreachable(
                    setup.attempt() + " is impossible: " + unavailable.getMessage(), unavailable));
        }
    }

    void prepare0(Context context, int portNumber, @Nullable InetSocketAddress local) {
        if (state != State.RESOLVING) {
            return;
        }
        state = State.PREPARING;
        setup.setStep("creating the queue pair");
        if (local != null) {
            localAddress = local;
        }
        try {
            VerbsDevice used = provider.devices().of(context);
            QueuePairOptions wanted = resources.reserve(used, portNumber, membership.ioHandler());
            sends = reports.sends();
            ProtectionDomain domain = resources.domain();
            setup.execute(() -> setup.createQueuePair(used, domain, wanted));
        } catch (RuntimeException refused) {
            refuse0(setup.failureOf(refused));
        }
    }

    /** This side lacks a resource, so the connection is refused. */
    void refuse0(Throwable why) {
        if (request != null && state != State.DRAINING && state != State.CLOSED) {
            provider.refusals()
                    .warn("Refused the connection of " + VerbsProvider.format(remoteAddress) + ": " + why.getMessage());
        }
        drain(why);
    }

    void prepared0(QueuePair made) {
        if (state != State.PREPARING) {
            return;
        }
        try {
            resources.add(made, this);
        } catch (RuntimeException full) {
            refuse0(full);
            return;
        }
        EndpointCapabilities can = resources.capabilities().with(o -> o.reportsPeerEnd = setup.reportsPeerEnd());
        capabilities = can;
        operations = PostChecks.operations(can);
        domain = resources.device().memoryDomain();
        state = State.PREPARED;
        setup.setStep(setup.waiting());
        try {
            handler.onPrepared(this);
        } catch (Throwable thrown) {
            refuse0(thrown);
        }
        if (state != State.PREPARED) {
            return;
        }
        flush0();
        if (state == State.PREPARED) {
            ConnectionParameters parameters = resources.parameters(request == null ? null : request.connection());
            setup.execute(() -> setup.connectOrAccept(parameters));
        }
    }

    void established0(CmEvent event) {
        ConnectionParameters parameters = request == null ? event.connection() : request.connection();
        // What the peer serves, seen from here, is what this side may have under way.
        connected0(
                parameters == null ? Integer.MAX_VALUE : parameters.initiatorDepth(),
                request == null ? event.privateData() : request.privateData());
    }

    /** Connected without rdma_cm. */
    void connectedByHand0(InetSocketAddress peer, int peerReads, byte[] privateData) {
        if (state == State.PREPARED) {
            remoteAddress = peer;
            connected0(peerReads, privateData);
        }
    }

    private void connected0(int peerReads, byte[] privateData) {
        if (state != State.PREPARED) {
            return;
        }
        cancelTimeout();
        state = State.CONNECTED;
        wasConnected = true;
        EndpointCapabilities known = required(capabilities);
        try {
            resources.proveWindows();
        } catch (RuntimeException without) {
            drain(without);
            return;
        }
        capabilities = known.with(o -> {
            o.readDepth = Math.min(known.readDepth(), peerReads);
            o.connectionMemory = resources.windows() != null;
        });
        bindWaiting0();
        try {
            handler.onConnected(this, privateData);
        } catch (Throwable thrown) {
            drain(thrown);
        }
        if (receives.hasEarly()) {
            isTouched = true;
            receives.deliverEarly(wasConnected);
            onBatchEnd();
        }
    }

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return resources.rendezvousBytes(peerReceiveBytes);
    }

    private void cancelTimeout() {
        if (timeout != null) {
            timeout.cancel(false);
            timeout = null;
        }
    }

    /**
     * The device reports that a message came before the peer's confirmation, which may be lost: the connection manager
     * is notified, and establishes the connection. Any thread.
     */
    @Override
    public void onCommunicationEstablished() {
        execute(() -> {
            if (state == State.PREPARED && request != null) {
                setup.execute(setup::confirm);
            }
        });
    }

    // ---- failures

    /** The device reports that the queue pair, or all of the device, is lost. Any thread. */
    @Override
    public void onDeviceFailure(String what) {
        execute(() -> drainVaguely(new ConnectionException.Lost(connection() + " was lost: " + what)));
    }

    /** Ends the connection with a cause that a later report of the device may replace. */
    private void drainVaguely(ConnectionException.Lost failure) {
        boolean first = state != State.DRAINING;
        drain(failure);
        isCauseVague |= first;
    }

    /**
     * Receives come back. Over iWARP the peer has ended the connection, and the event that reports this is still to
     * come. A driver may give back the receives first: sends that come back as well were refused, and those that are
     * done were not. Elsewhere only an error of this side's queue pair gives receives back.
     */
    void drainFlushed() {
        if (device().isIwarp()) {
            reports.peerLeaves();
            drain(null);
            return;
        }
        String known = portProblem();
        drainVaguely(new ConnectionException.Lost(connection() + " was lost: "
                + (known == null ? "its queue pair failed, and gave its receives back" : known)));
    }

    /** What is wrong with its device or port now; null if nothing is. */
    @Nullable String portProblem() {
        return device().events().portProblem(resources.port());
    }

    /** The connection manager reports that the device is gone. Any thread. */
    @Override
    public void onDeviceRemoval() {
        execute(() -> {
            VerbsDevice used = resources.deviceIfKnown();
            drain(new ConnectionException.Lost(
                    connection() + " was lost: its device " + (used == null ? "" : used.name() + " ") + "was removed"));
        });
    }

    @Override
    public boolean completesOn(LoopDevice.LoopQueue queue) {
        return resources.completesOn(queue);
    }

    // ---- posting

    @Override
    public boolean post(WorkRequest work) {
        checkLoop();
        EndpointCapabilities can = capabilities;
        if (can == null) {
            return false;
        }
        PostChecks.operation(work.opcode(), operations);
        if (state != State.CONNECTED || sends.isFull() || hasBindingsWaiting()) {
            return false;
        }
        PostChecks.request(work, can, required(domain));
        return sends.post(work, can);
    }

    @Override
    public boolean postReceive(long workId, ScatterGatherList buffers) {
        checkLoop();
        if (receives.shared() != null) {
            throw new IllegalStateException(
                    "this endpoint's receives come from its shared receive queue: post them there");
        }
        if ((state != State.PREPARED && state != State.CONNECTED) || receives.isFull()) {
            return false;
        }
        return receives.post(workId, buffers);
    }

    @Override
    public int freeSendSlots() {
        checkLoop();
        return state == State.CONNECTED && !hasBindingsWaiting() ? sends.free() : 0;
    }

    private boolean hasBindingsWaiting() {
        ConnectionWindows windows = resources.windows();
        return windows != null && windows.hasWaiting();
    }

    private void bindWaiting0() {
        ConnectionWindows windows = resources.windows();
        if (windows != null) {
            windows.bindWaiting0();
        }
    }

    /** Runs something on the loop: at once if this is its thread, as with {@code channel.write}. Any thread. */
    void onLoop(Runnable task) {
        if (loop.inEventLoop()) {
            task.run();
        } else {
            execute(task);
        }
    }

    /** Whether a memory window can be bound now; otherwise that is asked again when something has completed. */
    boolean canBind() {
        return state == State.CONNECTED && (device().family().bindsBehindWork() || sends.awaitAll());
    }

    /** Posts the binding of a memory window. */
    void postBinding0(ConnectionWindows.Bound memory) {
        sends.bind(memory);
    }

    /** Posts the invalidation of a memory window. */
    void postInvalidation0(ConnectionWindows.Bound memory) {
        sends.invalidate(memory);
    }

    /** The oldest binding or invalidation has completed. */
    void onBinding0(WorkStatus status, int vendorError) {
        noteProgress();
        if (status != WorkStatus.SUCCESS && status != WorkStatus.FLUSHED) {
            drain(explain(new WorkCompletionException(
                    "binding or invalidating a memory window on " + connection(), status, vendorError)));
        }
        ConnectionWindows windows = resources.windows();
        if (windows != null) {
            windows.onBound0(resources.device(), status);
        }
    }

    @Override
    public void flush() {
        checkLoop();
        flush0();
    }

    private void flush0() {
        if (state == State.PREPARED || state == State.CONNECTED) {
            receives.flush();
        }
        if (state == State.CONNECTED) {
            sends.flush();
        }
    }

    // ---- completions, from LoopDevice

    /** Where its completions go. */
    @Override
    public CompletionReports reports() {
        return reports;
    }

    boolean isEnding() {
        return state == State.DRAINING || state == State.CLOSED;
    }

    boolean is(State which) {
        return state == which;
    }

    /** Whether what comes is for the handler: it is connected, or was. */
    boolean isDelivering() {
        return state == State.CONNECTED || (state == State.DRAINING && wasConnected);
    }

    void noteProgress() {
        if (state == State.DRAINING) {
            draining.noteProgress();
        }
    }

    /** The device, once it is prepared. */
    VerbsDevice device() {
        return resources.device();
    }

    /** The message of a failed completion, with what the device reported besides. */
    Throwable explain(Throwable failure) {
        return resources.device().events().explain(failure, resources.port(), connection());
    }

    /** A batch of completions was handled. */
    @Override
    public void onBatchEnd() {
        isTouched = false;
        bindWaiting0();
        try {
            handler.onCompletionsHandled(this);
        } catch (Throwable thrown) {
            drain(thrown);
        }
        sends.onBatchEnd();
        checkDrained();
    }

    // ---- the end

    @Override
    public void disconnect() {
        if (loop.inEventLoop() && state != State.NEW) {
            disconnect0();
        } else {
            execute(this::disconnect0);
        }
    }

    private void disconnect0() {
        if (state != State.DRAINING && state != State.CLOSED) {
            isLocalEnd = true;
            drain(
                    state == State.CONNECTED
                            ? null
                            : new ConnectionException(setup.attempt() + " was closed by this side"));
        }
    }

    void disconnected0(CmEvent event) {
        if (state == State.CONNECTED) {
            // What the peer acknowledged before it left may wait in the queue.
            resources.pollAll();
        }
        if (state == State.CONNECTED) {
            drain(reports.peerLeft());
        } else if (state != State.DRAINING && state != State.CLOSED) {
            drain(setup.failureOf(event));
        }
    }

    /**
     * Ends the connection, or the attempt. The first call decides on the cause, unless all it knew was that the device
     * gave up on the queue pair: a completion says more, and may come later.
     *
     * @param failure why; null in good order
     */
    @Override
    public void drain(@Nullable Throwable failure) {
        if (state == State.CLOSED) {
            return;
        }
        Throwable why = failure instanceof NativeRdmaException refused ? NativeFailures.of(refused) : failure;
        if (state == State.DRAINING) {
            boolean better = cause == null ? why != null : isCauseVague && why instanceof RdmaException;
            if (better && !isLocalEnd) {
                cause = why;
                isCauseVague = false;
            }
            return;
        }
        State before = state;
        state = State.DRAINING;
        setup.giveUp();
        cause = why;
        cancelTimeout();
        LOG.debug("{} ends in state {}: {}", connection(), before, why == null ? "in good order" : why.toString());
        sends.end();
        receives.discard();
        membership.ioHandler().startDraining(loop, this);
        if (request != null && endedBefore == null && before != State.CONNECTED) {
            // This may be within a call of the handler.
            execute(() -> toErrorState0(VerbsEndpoints.rejection(handler, this)));
        } else {
            toErrorState0(NOTHING);
        }
    }

    private void toErrorState0(byte[] rejection) {
        try {
            setup.execute(() -> setup.toErrorState(rejection));
        } catch (RuntimeException never) {
            // There is no connection loop, so nothing was made on it.
            execute(this::inErrorState0);
        }
    }

    /** The device has given back all that it took of the shared receive queue. Any thread. */
    @Override
    public void onLastReceiveTaken() {
        execute(() -> {
            draining.lastReceiveTaken();
            checkDrained();
        });
    }

    @Override
    boolean isDraining() {
        return state == State.DRAINING;
    }

    @Override
    void checkDrained() {
        if (state != State.DRAINING) {
            return;
        }
        boolean isAllBack = sends.areAllBack() && receives.areAllBack();
        switch (draining.next(isAllBack, receives.shared() != null, resources.hasQueuePair())) {
            case WAIT -> {}
            case POLL -> execute(this::pollEmpty0); // this may be within a batch
            case DESTROY -> destroy0();
        }
    }

    private void pollEmpty0() {
        resources.pollAll();
        draining.polledEmpty();
        checkDrained();
    }

    @Override
    void destroy0() {
        VerbsDevice asked = DeviceEvents.completionOf(cause) == null ? null : resources.device();
        int port = resources.port();
        try {
            setup.execute(() -> {
                if (asked != null) {
                    // The completion may have overtaken the event that says why.
                    asked.events().queryPort(port);
                }
                try {
                    setup.destroy();
                } catch (Throwable thrown) {
                    LOG.error("What is left of {} could not be destroyed", connection(), thrown);
                    execute(() -> finish0(false));
                }
            });
        } catch (RuntimeException never) {
            execute(() -> finish0(true));
        }
    }

    @Override
    void finish0(boolean queuePairGone) {
        if (state != State.DRAINING) {
            return;
        }
        if (resources.hasQueuePair()) {
            // Completions that the device wrote before the queue pair was destroyed.
            resources.pollAll();
            boolean anything = sends.count() > 0 || receives.hasRest();
            receives.deliverEarly(wasConnected);
            sends.completeRest(queuePairGone);
            receives.completeRest(queuePairGone);
            if (anything) {
                onBatchEnd();
            }
            resources.remove();
        }
        resources.abandonWindows0();
        if (queuePairGone) {
            releaseCompletions0();
        }
        state = State.CLOSED;
        membership.leave0();
        Throwable why = cause;
        VerbsDevice known = resources.deviceIfKnown();
        try {
            handler.onDisconnected(
                    this,
                    why == null || known == null ? why : known.events().explain(why, resources.port(), connection()));
        } catch (Throwable thrown) {
            LOG.warn("onDisconnected of {} threw", connection(), thrown);
        }
    }

    /** The queue pair is about to be destroyed. The connection loop's thread. */
    void endWindows() {
        resources.endWindows();
    }

    void releaseCompletions0() {
        resources.release();
    }

    @Override
    public void close() {
        disconnect0();
    }

    @Override
    public void destroy() {
        disconnect0();
    }

    // ---- properties

    static <T> T required(@Nullable T value) {
        if (value == null) {
            throw new IllegalStateException("not available yet: this is a bug in the verbs provider");
        }
        return value;
    }

    private <T> T prepared(@Nullable T value) {
        if (value == null) {
            throw new IllegalStateException("known from onPrepared on");
        }
        return value;
    }

    @Override
    public EndpointCapabilities capabilities() {
        return prepared(capabilities);
    }

    @Override
    public MemoryDomain memoryDomain() {
        return prepared(resources.deviceIfKnown()).memoryDomain();
    }

    @Override
    public MemoryDomain connectionMemory() {
        ConnectionWindows windows = resources.windows();
        return windows == null ? memoryDomain() : windows;
    }

    @Override
    public InetSocketAddress localAddress() {
        return prepared(localAddress);
    }

    @Override
    public InetSocketAddress remoteAddress() {
        return remoteAddress;
    }

    @Override
    public @Nullable SharedReceiveQueue sharedReceiveQueue() {
        return receives.shared();
    }

    @Override
    public String toString() {
        return "VerbsEndpoint[" + connection() + "]";
    }
}
