package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.ConnectionParameters;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.RdmaException;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkCompletionException;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.transport.spi.WorkStatus;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.ffm.Siw;

/**
 * One connection: an id of the connection manager and its queue pair.
 *
 * <pre>{@code
 *             completion loop                               connection loop
 *
 *   NEW       start0 ------------------------------------->  create id, resolve address        (a request has its id already)
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
 * <p>The left column is this class: everything in it runs on the completion loop, and so do posting and polling. The right column is {@link
 * ConnectionSetup}, on the connection loop.
 *
 * <p>Work goes through {@link SendPath} and {@link ReceivePath}; what becomes of it comes back to this class, which has the handler.
 */
final class VerbsEndpoint implements Endpoint, VerbsHandle, SendPath.Events, ReceivePath.Events {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsEndpoint.class);

    /** In a queue pair in its error state the rest is lost if nothing came for so long; destroying it is safe at any time. */
    private static final long DRAIN_SILENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /** Receive buffers are pinned for every connection, so the default stays small. */
    private static final int RECEIVE_BUFFER_BYTES = 16 << 10;

    /** Four receive buffers of the default size: below, a round trip and a key cost more than the adapter's reading saves. */
    private static final int RENDEZVOUS_BYTES = 64 << 10;

    private static final byte[] NOTHING = {};

    private enum State {
        NEW,
        RESOLVING,
        PREPARING,
        PREPARED,
        CONNECTED,
        DRAINING,
        CLOSED
    }

    private final VerbsProvider provider;
    private final IoEventLoop loop;
    private final EndpointOptions options;
    private final EndpointHandler handler;
    private final InetSocketAddress remoteAddress;
    private final ConnectionSetup setup;

    /** The connection request that is accepted, null when connecting. */
    private final @Nullable CmEvent request;

    /** Written by the loop once; read by those who hop to it. */
    private volatile @Nullable CompletionIoHandler ioHandler;

    /** Written before it starts, or by the loop when it is prepared; read by any thread then. */
    private volatile @Nullable InetSocketAddress localAddress;

    // ---- the loop's thread alone, from here on

    private State state = State.NEW;
    private @Nullable IoRegistration registration;
    private @Nullable Future<?> timeout;
    private @Nullable CmEvent endedBefore;
    private @Nullable VerbsDevice device;
    private @Nullable LoopDevice loopDevice;
    private LoopDevice.@Nullable LoopQueue loopQueue;
    private @Nullable QueuePair queuePair;
    private @Nullable EndpointCapabilities capabilities;
    private int port;
    private int index;
    private boolean isTouched;
    private @Nullable Throwable cause;

    /** The device said that it gave up, not why. */
    private boolean isCauseVague;

    private boolean wasConnected;
    private boolean isLocalEnd;

    private final SendPath sends;
    private final ReceivePath receives;

    // Draining.
    private boolean isInErrorState;
    private boolean isDestroyAsked;
    private boolean isLastReceiveTaken;
    private boolean isPollAsked;
    private boolean isPolledEmpty;
    private boolean isSilent;
    private long lastProgressNanos;

    private VerbsEndpoint(
            VerbsProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            @Nullable CmEvent request) {
        this.provider = provider;
        this.loop = loop;
        this.options = options;
        this.handler = handler;
        this.remoteAddress = remoteAddress;
        this.request = request;
        setup = new ConnectionSetup(this, provider, options, remoteAddress, request);
        sends = new SendPath(options.sendDepth(), options.maxSges(), this);
        receives = new ReceivePath(options.sharedReceiveQueue() ? 0 : options.receiveDepth(), options.maxSges(), this);
    }

    /** An endpoint that will connect. */
    static VerbsEndpoint connecting(
            VerbsProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress) {
        return new VerbsEndpoint(provider, loop, options, handler, remoteAddress, null);
    }

    /** An endpoint that will accept. */
    static VerbsEndpoint accepted(
            VerbsProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler handler,
            CmEvent request,
            InetSocketAddress localAddress,
            InetSocketAddress remoteAddress) {
        VerbsEndpoint endpoint = new VerbsEndpoint(provider, loop, options, handler, remoteAddress, request);
        endpoint.localAddress = localAddress;
        return endpoint;
    }

    /** Receives the events of the id. */
    CmEventSink cmEventSink() {
        return setup;
    }

    /** Tells of an event that ended the request before it was accepted; before {@link #start}. */
    void endedBeforeAccepted(CmEvent event) {
        endedBefore = event;
    }

    /** Begins, on the loop: never within the caller. */
    void start() {
        loop.execute(this::start0);
    }

    /** Runs something on the loop. Any thread. */
    void execute(Runnable task) {
        CompletionIoHandler known = ioHandler;
        if (known != null) {
            known.execute(loop, task);
            return;
        }
        try {
            loop.execute(task);
        } catch (RejectedExecutionException ended) {
            LOG.debug("{}: its loop has ended", this, ended);
        }
    }

    private String connection() {
        InetSocketAddress local = localAddress;
        return request == null
                ? "the connection to " + VerbsProvider.format(remoteAddress)
                : "the connection from " + VerbsProvider.format(remoteAddress)
                        + (local == null ? "" : " to " + VerbsProvider.format(local));
    }

    // ---- connecting

    private void start0() {
        Future<IoRegistration> registered = loop.register(this);
        if (!registered.isSuccess()) {
            throw new IllegalStateException("not a loop of the verbs provider", registered.cause());
        }
        IoRegistration known = registered.getNow();
        registration = known;
        ioHandler = known.attachment();
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
        port = portNumber;
        setup.setStep("creating the queue pair");
        if (local != null) {
            localAddress = local;
        }
        try {
            VerbsDevice used = provider.device(context);
            device = used;
            checkLimits(used);
            LoopDevice queues = handlerOfLoop().deviceFor(used);
            boolean shared = options.sharedReceiveQueue() && used.attributes().maxSharedReceiveQueues() > 0;
            if (options.sharedReceiveQueue() && !shared) {
                throw new ConnectionException(used.name() + " has no shared receive queues: connect without one");
            }
            LoopDevice.LoopQueue completions = queues.reserve(reservedEntries(used), shared);
            loopDevice = queues;
            loopQueue = completions;
            QueuePairOptions wanted = QueuePairOptions.reliable(
                    completions.queue(),
                    new QueuePairCapabilities(
                            sendWorkRequests(used),
                            receives.depth(),
                            options.maxSges(),
                            shared ? 0 : options.maxSges(),
                            // siw sends few bytes rightly only so.
                            used.isSiw()
                                    ? Math.max(options.maxInlineBytes(), Siw.SHORT_BYTES)
                                    : options.maxInlineBytes()));
            if (shared) {
                VerbsSharedReceiveQueue common = queues.sharedReceiveQueue();
                receives.share(common);
                wanted = wanted.withSharedReceives(common.queue());
            }
            QueuePairOptions all = wanted;
            long maxMessageBytes = Math.min(Integer.MAX_VALUE, used.port(port).maxMessageBytes());
            setup.execute(() -> setup.createQueuePair(used, all, maxMessageBytes));
        } catch (RuntimeException refused) {
            refuse0(setup.failureOf(refused));
        }
    }

    /** This side lacks something, so that there will be no connection. */
    void refuse0(Throwable why) {
        if (request != null && state != State.DRAINING && state != State.CLOSED) {
            provider.refusals().refused(remoteAddress, why);
        }
        drain(why);
    }

    private int reservedEntries(VerbsDevice used) {
        return sendWorkRequests(used) + receives.depth();
    }

    /** Those that may be out on the device: on siw any read may be in two parts. */
    private int sendWorkRequests(VerbsDevice used) {
        return used.isSiw() ? 2 * options.sendDepth() : options.sendDepth();
    }

    private void checkLimits(VerbsDevice used) {
        DeviceAttributes limits = used.attributes();
        checkLimit(used, "sendDepth", options.sendDepth(), limits.maxWorkRequests() / (used.isSiw() ? 2 : 1));
        checkLimit(used, "receiveDepth", receives.depth(), limits.maxWorkRequests());
        checkLimit(used, "maxSges", options.maxSges(), limits.maxSges());
    }

    private static void checkLimit(VerbsDevice used, String what, int asked, int limit) {
        if (asked > limit) {
            throw new ConnectionException(
                    what + " " + asked + " is over the limit of " + used.name() + ", which is " + limit);
        }
    }

    void prepared0(QueuePair made, long maxMessageBytes) {
        if (state != State.PREPARING) {
            return;
        }
        VerbsDevice used = required(device);
        LoopDevice queues = required(loopDevice);
        try {
            index = queues.add(this);
        } catch (RuntimeException full) {
            refuse0(full);
            return;
        }
        int generation = queues.generation(index);
        queuePair = made;
        VerbsSharedReceiveQueue shared = receives.shared();
        sends.prepared(made.sendQueue(), used, index, generation);
        receives.prepared(shared == null ? made.receiveQueue() : null, used, index, generation);
        if (shared != null) {
            queues.share(made.number(), this);
        }
        used.add(made, this);
        boolean iwarp = used.isIwarp();
        capabilities = new EndpointCapabilities.Builder()
                .sendDepth(options.sendDepth())
                .receiveDepth(shared == null ? receives.depth() : shared.depth())
                .maxSges(shared == null ? options.maxSges() : Math.min(options.maxSges(), shared.maxSges()))
                .maxReadSges(
                        iwarp
                                ? 1
                                : Math.min(
                                        options.maxSges(),
                                        Math.max(1, used.attributes().maxReadSges())))
                .maxInlineBytes(made.sendQueue().maxInlineBytes())
                .readDepth(initiatorDepth(used))
                .maxMessageBytes(maxMessageBytes)
                .atomics(used.hasAtomics())
                .immediateData(used.hasImmediateData())
                // A region's key can be invalidated by a peer on hardly any adapter: that is for memory windows.
                .sendWithInvalidate(false)
                .readSinkNeedsRemoteWrite(iwarp)
                .receiveBufferBytes(RECEIVE_BUFFER_BYTES)
                .build();
        state = State.PREPARED;
        setup.setStep(request == null ? "waiting for the peer to accept" : "waiting for the peer to confirm");
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
            ConnectionParameters parameters = parameters(used);
            setup.execute(() -> setup.connectOrAccept(parameters));
        }
    }

    private int initiatorDepth(VerbsDevice used) {
        return Math.min(options.readDepth(), used.attributes().maxReadsAsInitiator());
    }

    private ConnectionParameters parameters(VerbsDevice used) {
        int responderResources = Math.min(options.readDepth(), used.attributes().maxReadsAsTarget());
        int initiatorDepth = initiatorDepth(used);
        ConnectionParameters asked = request == null ? null : request.connection();
        if (asked != null) {
            responderResources = Math.min(responderResources, asked.responderResources());
            initiatorDepth = Math.min(initiatorDepth, asked.initiatorDepth());
        }
        return ConnectionParameters.DEFAULT
                .withPrivateData(options.privateData())
                .withReads(responderResources, initiatorDepth)
                .withRetries(options.retryCount(), options.rnrRetryCount())
                .withQueuePair(0, receives.shared() != null);
    }

    void established0(CmEvent event) {
        if (state != State.PREPARED) {
            return;
        }
        cancelTimeout();
        state = State.CONNECTED;
        wasConnected = true;
        ConnectionParameters told = request == null ? event.connection() : request.connection();
        EndpointCapabilities known = required(capabilities);
        if (told != null) {
            // What the peer serves, seen from here, is what this side may have under way.
            capabilities = known.toBuilder()
                    .readDepth(Math.min(known.readDepth(), told.initiatorDepth()))
                    .build();
        }
        try {
            handler.onConnected(this, request == null ? event.privateData() : request.privateData());
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
        return RENDEZVOUS_BYTES;
    }

    private void cancelTimeout() {
        if (timeout != null) {
            timeout.cancel(false);
            timeout = null;
        }
    }

    // ---- failures

    /** The device says that the queue pair, or all of it, is lost. Any thread. */
    void onDeviceFailure(String what) {
        execute(() -> {
            boolean first = state != State.DRAINING;
            drain(new ConnectionException.Lost(connection() + " was lost: " + what));
            isCauseVague |= first;
        });
    }

    /** The connection manager says that the device is gone. Any thread. */
    void onDeviceRemoval() {
        execute(() -> {
            VerbsDevice used = device;
            drain(new ConnectionException.Lost(
                    connection() + " was lost: its device " + (used == null ? "" : used.name() + " ") + "was removed"));
        });
    }

    /** A queue is lost. Any thread. */
    void onQueueError(@Nullable VerbsObject source) {
        execute(() -> {
            VerbsSharedReceiveQueue shared = receives.shared();
            if ((loopQueue != null && loopQueue.queue() == source) || (shared != null && shared.queue() == source)) {
                drain(new ConnectionException.Lost(
                        connection() + " was lost: the device reported an error of " + source));
            }
        });
    }

    boolean completesOn(LoopDevice.LoopQueue queue) {
        return loopQueue == queue;
    }

    // ---- posting

    private void checkLoop() {
        if (!loop.inEventLoop()) {
            throw new IllegalStateException("an endpoint belongs to its event loop: use loop.execute()");
        }
    }

    @Override
    public boolean post(WorkRequest work) {
        checkLoop();
        EndpointCapabilities can = capabilities;
        if (can == null) {
            return false;
        }
        PostChecks.operation(work, can);
        if (state != State.CONNECTED || sends.isFull()) {
            return false;
        }
        PostChecks.request(work, can, required(device).memoryDomain());
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
        return state == State.CONNECTED ? sends.free() : 0;
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

    @Override
    public void onSendsRefused(int errno, int taken, int out) {
        drain(new VerbsException(
                "ibv_post_send() on " + connection(),
                errno,
                "the device took " + taken + " of " + out
                        + " work requests; those it did not take complete as FLUSHED"));
    }

    @Override
    public void onReceivesRefused(int errno, int taken, int out) {
        drain(new VerbsException(
                "ibv_post_recv() on " + connection(),
                errno,
                "the device took " + taken + " of " + out + " receives; those it did not take complete as FLUSHED"));
    }

    // ---- completions, from LoopDevice

    /** Marks that this batch has completions for this endpoint; gives whether it had been marked. */
    boolean touch() {
        boolean before = isTouched;
        isTouched = true;
        return before;
    }

    /** A slot of the send queue was done. */
    void onSendDone(int slot) {
        if (!sends.isOut(slot)) {
            strayCompletion("send", slot);
            return;
        }
        noteProgress();
        sends.onDone(slot);
    }

    /** A slot of the send queue failed. */
    void onSendFailed(int slot, WorkStatus status, int vendorError) {
        if (!sends.isOut(slot)) {
            strayCompletion("send", slot);
            return;
        }
        endFailed(slot, status, vendorError);
        sends.onFailed(slot, status);
    }

    /** The first part of a slot of the send queue failed; the second is still to come. */
    void onFirstPartFailed(int slot, WorkStatus status, int vendorError) {
        if (!sends.isOut(slot)) {
            strayCompletion("send", slot);
            return;
        }
        sends.onFirstPartFailed(slot, status);
        endFailed(slot, status, vendorError);
    }

    private void endFailed(int slot, WorkStatus status, int vendorError) {
        if (status != WorkStatus.FLUSHED) {
            VerbsDevice used = required(device);
            drain(used.explain(new WorkCompletionException(describeSend(slot), status, vendorError), connection()));
        } else if (state == State.CONNECTED) {
            // The queue pair went to its error state by the peer's doing: over iWARP a TERMINATE gives no other sign.
            drain(lostWith(describeSend(slot)));
        }
        noteProgress();
    }

    private void noteProgress() {
        if (state == State.DRAINING) {
            lastProgressNanos = System.nanoTime();
        }
    }

    private ConnectionException lostWith(String work) {
        String trouble = required(device).trouble();
        return new ConnectionException.Lost(connection() + " was ended by the peer, its adapter or the network while "
                + work + " was out; if the peer's side has an error, that is the reason"
                + (trouble == null ? "" : " (" + trouble + ")"));
    }

    @Override
    public void onSendCompleted(long workId, WorkStatus status, int lengthBytes) {
        try {
            handler.onSendCompletion(this, workId, status, lengthBytes);
        } catch (Throwable thrown) {
            drain(thrown);
        }
    }

    private String describeSend(int slot) {
        return sends.describe(slot) + " on " + connection();
    }

    /** A receive has a message. */
    void onReceiveDone(int kind, int slot, WorkCompletions completions, int i) {
        noteProgress();
        if (state == State.CONNECTED || (state == State.DRAINING && wasConnected)) {
            receives.onDone(kind, slot, completions, i);
        } else if (state == State.PREPARED) {
            // The peer was told before this side: the event is on its way.
            receives.onEarly(kind, slot, completions, i);
        } else {
            receives.deliverEarly(wasConnected);
            receives.onFailed(kind, slot, WorkStatus.FLUSHED);
        }
    }

    /** A receive failed or was flushed. */
    void onReceiveFailed(int kind, int slot, WorkStatus status, int vendorError) {
        if (status != WorkStatus.FLUSHED) {
            drain(required(device)
                    .explain(
                            new WorkCompletionException("a receive on " + connection(), status, vendorError),
                            connection()));
        } else if (state == State.CONNECTED) {
            // The peer ended the connection, and over iWARP its receives come back before the event that says so.
            drain(null);
        }
        noteProgress();
        receives.deliverEarly(wasConnected);
        receives.onFailed(kind, slot, status);
    }

    @Override
    public void onReceiveCompleted(long workId, WorkStatus status, int lengthBytes, int flags, int immediate) {
        try {
            handler.onReceiveCompletion(this, workId, status, lengthBytes, flags, immediate);
        } catch (Throwable thrown) {
            drain(thrown);
        }
    }

    @Override
    public void onStrayReceive(int slot) {
        strayCompletion("receive", slot);
    }

    private void strayCompletion(String queue, int slot) {
        drain(new IllegalStateException("the device completed slot " + slot + " of the " + queue + " queue of "
                + connection() + ", where nothing was out, or out of order: report the driver"));
    }

    /** A batch of completions was handled. */
    void onBatchEnd() {
        isTouched = false;
        try {
            handler.onCompletionsHandled(this);
        } catch (Throwable thrown) {
            drain(thrown);
        }
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
            required(loopDevice).pollAll();
        }
        if (state == State.CONNECTED) {
            drain(sends.count() == 0 ? null : lostWith(sends.describeOldest() + " on " + connection()));
        } else if (state != State.DRAINING && state != State.CLOSED) {
            drain(setup.failureOf(event));
        }
    }

    /**
     * Ends the connection, or the attempt. The first call decides on the cause, unless all it knew was that the device gave up on the queue pair: a completion tells
     * more, and may come later.
     *
     * @param failure why; null in good order
     */
    void drain(@Nullable Throwable failure) {
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
        sends.discard();
        receives.discard();
        lastProgressNanos = System.nanoTime();
        required(ioHandler).startDraining(loop, this);
        if (request != null && endedBefore == null && before != State.CONNECTED) {
            execute(() -> toErrorState0(false, rejection0())); // this may be within a call of the handler
        } else {
            toErrorState0(before == State.CONNECTED, NOTHING);
        }
    }

    /** What to tell a peer that is refused: it may wait for the answer to its request. */
    private byte[] rejection0() {
        try {
            byte[] reason = handler.rejection(this);
            if (reason.length <= EndpointOptions.MAX_PRIVATE_DATA_BYTES) {
                return reason;
            }
            LOG.warn("the handler of {} gave a rejection of {} bytes, which is too long", connection(), reason.length);
        } catch (Throwable thrown) {
            LOG.warn("rejection of {} threw", connection(), thrown);
        }
        return NOTHING;
    }

    private void toErrorState0(boolean connected, byte[] rejection) {
        try {
            setup.execute(() -> setup.toErrorState(connected, rejection));
        } catch (RuntimeException never) {
            // There is no connection loop, so nothing was made on it.
            execute(this::inErrorState0);
        }
    }

    void inErrorState0() {
        isInErrorState = true;
        lastProgressNanos = System.nanoTime();
        checkDrained();
    }

    /** The device has given back all that it took of the shared receive queue. Any thread. */
    void onLastReceiveTaken() {
        execute(() -> {
            isLastReceiveTaken = true;
            checkDrained();
        });
    }

    private void checkDrained() {
        if (state != State.DRAINING || !isInErrorState || isDestroyAsked) {
            return;
        }
        boolean shares = receives.shared() != null;
        boolean allBack = sends.areAllBack() && receives.areAllBack();
        boolean sharedBack = !shares || queuePair == null || isLastReceiveTaken;
        if (!isSilent && !(allBack && sharedBack)) {
            return;
        }
        LoopDevice queues = loopDevice;
        if (queues != null && shares && !isPolledEmpty) {
            // Adapters throw away the completions of a queue pair that is destroyed, and the shared receives with them.
            if (!isPollAsked) {
                isPollAsked = true;
                execute(() -> pollEmpty0(queues)); // this may be within a batch
            }
        } else {
            isDestroyAsked = true;
            boolean hadPeer = wasConnected;
            VerbsDevice asked = cause instanceof WorkCompletionException ? device : null;
            try {
                setup.execute(() -> {
                    if (asked != null) {
                        // The completion may have overtaken the event that says why.
                        asked.lookAt(port);
                    }
                    setup.destroy(hadPeer);
                });
            } catch (RuntimeException never) {
                execute(() -> finish0(true));
            }
        }
    }

    private void pollEmpty0(LoopDevice queues) {
        queues.pollAll();
        isPolledEmpty = true;
        checkDrained();
    }

    /**
     * Looks whether a device has fallen silent.
     *
     * @param now System.nanoTime()
     * @return false if there is nothing more to look after
     */
    boolean drainTick(long now) {
        if (state != State.DRAINING || isDestroyAsked) {
            return false;
        }
        if (isInErrorState && now - lastProgressNanos > DRAIN_SILENCE_NANOS) {
            isSilent = true;
            checkDrained();
            return false;
        }
        return true;
    }

    void finish0(boolean queuePairGone) {
        if (state != State.DRAINING) {
            return;
        }
        LoopDevice queues = loopDevice;
        QueuePair made = queuePair;
        if (made != null && queues != null) {
            // What the device wrote before the queue pair was gone.
            queues.pollAll();
            boolean anything = sends.count() > 0 || receives.hasRest();
            receives.deliverEarly(wasConnected);
            sends.completeRest(queuePairGone);
            receives.completeRest(queuePairGone);
            if (anything) {
                onBatchEnd();
            }
            queues.remove(index);
            required(device).remove(made);
            if (receives.shared() != null) {
                queues.unshare(made.number());
            }
        }
        if (queuePairGone) {
            releaseCompletions0();
        }
        state = State.CLOSED;
        if (registration != null) {
            registration.cancel();
        }
        try {
            VerbsDevice used = device;
            handler.onDisconnected(
                    this,
                    used != null && cause instanceof WorkCompletionException vague
                            ? used.explain(vague, connection())
                            : cause);
        } catch (Throwable thrown) {
            LOG.warn("onDisconnected of {} threw", connection(), thrown);
        }
    }

    void releaseCompletions0() {
        LoopDevice queues = loopDevice;
        LoopDevice.LoopQueue reserved = loopQueue;
        if (queues != null && reserved != null) {
            loopQueue = null;
            queues.release(reserved, reservedEntries(required(device)), receives.shared() != null);
        }
    }

    @Override
    public void close() {
        disconnect0();
    }

    @Override
    public void destroy() {
        disconnect0();
    }

    // ---- what it is

    private CompletionIoHandler handlerOfLoop() {
        return required(ioHandler);
    }

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
        return prepared(device).memoryDomain();
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
