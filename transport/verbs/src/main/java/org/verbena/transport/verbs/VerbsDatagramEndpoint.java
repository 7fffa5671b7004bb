package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.DatagramArrival;
import org.verbena.transport.spi.DatagramCapabilities;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.DatagramHandler;
import org.verbena.transport.spi.DatagramOptions;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.queue.QueuePairType;

/**
 * A UD queue pair and its port.
 *
 * <pre>{@code
 *             completion loop                               connection loop
 *
 *   NEW       start0 ------------------------------------->  create id, bind
 *   OPENING   prepare0: reserve completions  <-------------
 *                                            ------------->  create the queue pair, listen
 *             opened0: onOpened, receives    <-------------
 *   OPEN      ... completions, look-ups ...                  CONNECT_REQUEST: answered with the queue pair's number
 *             drain(cause), from any state   ------------->  queue pair to its error state
 *   DRAINING  completions, flushed           <-------------
 *             all are back, or silence       ------------->  leave groups, destroy queue pair, id, address handles
 *             finish0: onClosed              <-------------
 *   CLOSED
 * }</pre>
 *
 * <p>The left column is this class, which runs on the completion loop only; the right one is {@link DatagramSetup}.
 * Where datagrams go is a {@link VerbsDestination}.
 */
final class VerbsDatagramEndpoint extends QueuePairEndpoint
        implements DatagramEndpoint, LoopEndpoint.Reports, DatagramSends.Events, ReceivePath.Events {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsDatagramEndpoint.class);

    /** {@code sizeof(struct ibv_grh)}: what precedes each datagram in its receive. */
    private static final int GLOBAL_ROUTE_HEADER_BYTES = 40;

    private enum State {
        NEW,
        OPENING,
        OPEN,
        DRAINING,
        CLOSED
    }

    private final VerbsProvider provider;
    private final DatagramOptions options;
    private final DatagramHandler handler;
    private final DatagramSetup setup;
    private final InetSocketAddress requested;

    // ---- only the loop's thread, from here on

    private State state = State.NEW;
    private @Nullable VerbsDevice device;
    private @Nullable LoopDevice loopDevice;
    private LoopDevice.@Nullable LoopQueue loopQueue;
    private @Nullable QueuePair queuePair;
    private @Nullable DatagramCapabilities capabilities;
    private @Nullable Throwable cause;
    private int index;

    /** On InfiniBand; elsewhere the device's values have no meaning. */
    private boolean hasLids;

    /** What has not been released. */
    private final Set<VerbsDestination> destinations = new LinkedHashSet<>();

    private final DatagramSends sends;
    private final ReceivePath receives;
    private final DatagramArrival arrival = new DatagramArrival();

    VerbsDatagramEndpoint(
            VerbsProvider provider,
            IoEventLoop loop,
            InetSocketAddress requested,
            @Nullable InetSocketAddress toward,
            DatagramOptions options,
            DatagramHandler handler) {
        super(loop);
        this.provider = provider;
        this.requested = requested;
        this.options = options;
        this.handler = handler;
        setup = new DatagramSetup(this, provider, requested, toward, options);
        sends = new DatagramSends(options.sendDepth(), this);
        receives = new ReceivePath(options.receiveDepth(), options.maxSges(), this);
    }

    IoEventLoop loop() {
        return loop;
    }

    // ---- opening

    @Override
    void start0() {
        membership.join0();
        if (state != State.NEW) {
            // Closed before it began.
            state = State.OPENING;
            drain(null);
            return;
        }
        state = State.OPENING;
        try {
            setup.execute(setup::begin);
        } catch (RuntimeException unavailable) {
            drain(new ConnectionException.Unreachable(
                    setup.attempt() + " is impossible: " + unavailable.getMessage(), unavailable));
        }
    }

    void prepare0(Context context) {
        if (state != State.OPENING) {
            return;
        }
        try {
            VerbsDevice used = provider.devices().of(context);
            device = used;
            int receiveSges = applyLimits(used);
            LoopDevice queues = membership.ioHandler().deviceFor(used);
            LoopDevice.LoopQueue completions = queues.reserve(reservedEntries(), false);
            loopDevice = queues;
            loopQueue = completions;
            QueuePairOptions wanted = QueuePairOptions.reliable(
                            completions.queue(),
                            new QueuePairCapabilities(
                                    sends.depth(),
                                    receives.depth(),
                                    options.maxSges(),
                                    receiveSges,
                                    options.maxInlineBytes()))
                    .withType(QueuePairType.UD);
            setup.execute(() -> setup.createQueuePair(used, queues.domain(), wanted));
        } catch (RuntimeException refused) {
            drain(ConnectFailures.of(setup.attempt() + " failed", refused));
        }
    }

    private int reservedEntries() {
        return sends.depth() + receives.depth();
    }

    /** Takes what the device has, where it has less than was wished for. Returns the elements of a receive. */
    private int applyLimits(VerbsDevice used) {
        DeviceAttributes limits = used.attributes();
        DatagramOptions wishes = DatagramOptions.DEFAULTS;
        sends.limit(EndpointResources.within(
                used, "sendDepth", options.sendDepth(), wishes.sendDepth(), limits.maxWorkRequests()));
        // What the device reports is true for receives; whether a send can have more is found by trial.
        int sges = EndpointResources.within(used, "maxSges", options.maxSges(), wishes.maxSges(), limits.maxSges());
        receives.limit(
                EndpointResources.within(
                        used, "receiveDepth", options.receiveDepth(), wishes.receiveDepth(), limits.maxWorkRequests()),
                sges);
        return sges;
    }

    void opened0(QueuePair made) {
        if (state != State.OPENING) {
            return;
        }
        try {
            add0(made);
        } catch (RuntimeException refused) {
            drain(ConnectFailures.of(setup.attempt() + " failed", refused));
            return;
        }
        state = State.OPEN;
        try {
            handler.onOpened(this);
        } catch (Throwable thrown) {
            drain(thrown);
        }
        flush0();
    }

    /** Completions find it from now on. */
    private void add0(QueuePair made) {
        VerbsDevice used = required(device);
        LoopDevice queues = required(loopDevice);
        PortAttributes port = used.port(setup.port());
        index = queues.add(this);
        queuePair = made;
        int generation = queues.generation(index);
        sends.prepared(made.sendQueue(), used.inlineBytes(made), index, generation);
        receives.prepared(made.receiveQueue(), used, index, generation);
        used.events().add(made, this);
        hasLids = port.linkLayer() != LinkLayer.ETHERNET;
        capabilities = new DatagramCapabilities(
                port.activeMtu().bytes(),
                GLOBAL_ROUTE_HEADER_BYTES + port.maxMtu().bytes(),
                GLOBAL_ROUTE_HEADER_BYTES,
                sends.depth(),
                receives.depth(),
                Math.min(options.maxSges(), made.sendQueue().maxSges()),
                used.inlineBytes(made));
    }

    // ---- destinations

    @Override
    public DatagramDestination resolve(InetSocketAddress address, int timeoutMillis) {
        VerbsProvider.requireResolved(address);
        return start(VerbsDestination.of(this, setup, address), timeoutMillis);
    }

    @Override
    public DatagramDestination resolve(DatagramPeer peer) {
        return start(VerbsDestination.of(this, setup, peer), setup.resolveMillis());
    }

    @Override
    public DatagramDestination join(InetSocketAddress group, int timeoutMillis) {
        VerbsProvider.requireResolved(group);
        if (!group.getAddress().isMulticastAddress()) {
            throw new IllegalArgumentException(group + " is not a multicast address");
        }
        return start(VerbsDestination.member(this, setup, group), timeoutMillis);
    }

    private VerbsDestination start(VerbsDestination made, int timeoutMillis) {
        checkLoop();
        if (state != State.OPEN) {
            throw new IllegalStateException(this + " is not open");
        }
        destinations.add(made);
        made.start0(timeoutMillis);
        return made;
    }

    /** A look-up has its outcome. */
    void resolved0(VerbsDestination destination, @Nullable Throwable failure) {
        try {
            handler.onResolved(this, destination, failure);
        } catch (Throwable thrown) {
            drain(thrown);
        }
    }

    /** A group that was joined is lost. */
    void groupLost0(VerbsDestination destination, Throwable failure) {
        try {
            handler.onGroupLost(this, destination, failure);
        } catch (Throwable thrown) {
            drain(thrown);
        }
    }

    /** A destination is not needed any more. */
    void released0(VerbsDestination destination) {
        destinations.remove(destination);
    }

    // ---- posting

    @Override
    public boolean postReceive(long workId, ScatterGatherList buffers) {
        checkLoop();
        return state == State.OPEN && !receives.isFull() && receives.post(workId, buffers);
    }

    @Override
    public boolean post(
            long workId,
            ScatterGatherList buffers,
            DatagramDestination destination,
            boolean hasImmediateData,
            int immediateData) {
        checkLoop();
        if (state != State.OPEN || sends.free() == 0) {
            return false;
        }
        if (!(destination instanceof VerbsDestination to) || to.endpoint() != this) {
            throw new IllegalArgumentException(destination + " is a destination of another endpoint");
        }
        if (!to.isReady()) {
            throw new IllegalStateException(destination + " is not ready: wait for onResolved");
        }
        check(buffers);
        return sends.post(workId, buffers, to, hasImmediateData, immediateData);
    }

    private void check(ScatterGatherList buffers) {
        int max = required(capabilities).maxDatagramBytes();
        if (buffers.totalBytes() > max) {
            throw new IllegalArgumentException("a datagram of " + buffers.totalBytes()
                    + " bytes is longer than the MTU of " + required(device).name() + ", which is " + max);
        }
        int allowed = required(capabilities).maxSges();
        if (buffers.count() > allowed) {
            throw new IllegalArgumentException(
                    "a datagram has at most " + allowed + " elements here, not " + buffers.count());
        }
        for (int i = 0; i < buffers.count(); i++) {
            required(device).memoryDomain().checkOwn(buffers.region(i));
        }
    }

    @Override
    public int freeSendSlots() {
        checkLoop();
        return state == State.OPEN ? sends.free() : 0;
    }

    @Override
    public void flush() {
        checkLoop();
        flush0();
    }

    private void flush0() {
        if (state == State.OPEN && receives.flush()) {
            sends.flush();
        }
    }

    // ---- completions

    @Override
    public LoopEndpoint.Reports reports() {
        return this;
    }

    @Override
    public void onSendDone(int slot) {
        onSendFailed(slot, WorkStatus.SUCCESS, 0);
    }

    @Override
    public void onSendFailed(int slot, WorkStatus status, int vendorError) {
        if (!sends.isOut(slot)) {
            stray("send", slot);
            return;
        }
        draining.noteProgress();
        if (status != WorkStatus.SUCCESS && status != WorkStatus.FLUSHED) {
            drain(required(device)
                    .events()
                    .explain(
                            new WorkCompletionException(sends.describe(slot) + " from " + this, status, vendorError),
                            setup.port(),
                            toString()));
        }
        sends.onCompletion(slot, status);
    }

    @Override
    public void onFirstPartFailed(int slot, WorkStatus status, int vendorError) {
        stray("send", slot);
    }

    @Override
    public void onReceiveDone(int kind, int slot, WorkCompletions completions, int i) {
        draining.noteProgress();
        if (state == State.OPEN) {
            arrival.source(
                    completions.sourceQueuePairNumber(i) & DatagramPeer.MULTICAST,
                    hasLids ? completions.sourceLid(i) : 0,
                    completions.serviceLevel(i) & 15,
                    completions.hasGlobalRouteHeader(i));
            receives.onDone(kind, slot, completions, i);
        } else {
            receives.onFailed(kind, slot, WorkStatus.FLUSHED);
        }
    }

    @Override
    public void onReceiveFailed(int kind, int slot, WorkStatus status, int vendorError) {
        draining.noteProgress();
        if (status != WorkStatus.FLUSHED) {
            drain(required(device)
                    .events()
                    .explain(
                            new WorkCompletionException("a receive of " + this, status, vendorError),
                            setup.port(),
                            toString()));
        }
        receives.onFailed(kind, slot, status);
    }

    private void stray(String queue, int slot) {
        drain(new IllegalStateException("the device completed slot " + slot + " of the " + queue + " queue of " + this
                + ", where nothing was out, or out of order: report the driver"));
    }

    @Override
    public void onSendCompleted(long workId, WorkStatus status) {
        try {
            handler.onSendCompletion(this, workId, status);
        } catch (Throwable thrown) {
            drain(thrown);
        }
    }

    @Override
    public void onReceiveCompleted(long workId, WorkStatus status, int lengthBytes, int flags, int immediate) {
        arrival.message(lengthBytes, (flags & EndpointHandler.WITH_IMMEDIATE) != 0, immediate);
        try {
            handler.onReceiveCompletion(this, workId, status, arrival);
        } catch (Throwable thrown) {
            drain(thrown);
        }
    }

    @Override
    public void onStrayReceive(int slot) {
        stray("receive", slot);
    }

    @Override
    public void onSendsRefused(int errno, int taken, int out) {
        drain(refused("ibv_post_send()", errno, taken, out, "sends"));
    }

    @Override
    public void onReceivesRefused(int errno, int taken, int out) {
        drain(refused("ibv_post_recv()", errno, taken, out, "receives"));
    }

    private VerbsException refused(String call, int errno, int taken, int out, String what) {
        return new VerbsException(
                call + " on " + this,
                errno,
                "the device took " + taken + " of " + out + " " + what + "; those it did not take complete as FLUSHED");
    }

    @Override
    public void onBatchEnd() {
        isTouched = false;
        try {
            handler.onCompletionsHandled(this);
        } catch (Throwable thrown) {
            drain(thrown);
        }
        checkDrained();
    }

    // ---- failures

    @Override
    public boolean completesOn(LoopDevice.LoopQueue queue) {
        return loopQueue == queue;
    }

    @Override
    public void onDeviceFailure(String what) {
        execute(() -> drain(new ConnectionException.Lost(this + " were lost: " + what)));
    }

    @Override
    public void onDeviceRemoval() {
        execute(() -> {
            VerbsDevice used = device;
            drain(new ConnectionException.Lost(
                    this + " were lost: their device " + (used == null ? "" : used.name() + " ") + "was removed"));
        });
    }

    // ---- the end

    @Override
    public void close() {
        if (loop.inEventLoop()) {
            close0();
        } else {
            execute(this::close0);
        }
    }

    private void close0() {
        if (state == State.NEW) {
            state = State.DRAINING; // start0, which is still to come, finds it
        } else {
            drain(null);
        }
    }

    @Override
    public void destroy() {
        close0();
    }

    @Override
    public void drain(@Nullable Throwable failure) {
        if (state == State.CLOSED || state == State.DRAINING) {
            return;
        }
        state = State.DRAINING;
        cause = failure instanceof NativeRdmaException refused ? NativeFailures.of(refused) : failure;
        LOG.debug("{} end: {}", this, failure == null ? "in good order" : failure.toString());
        sends.end();
        receives.discard();
        membership.ioHandler().startDraining(loop, this);
        execute(this::failDestinations0); // this may be within a call of the handler
        try {
            setup.execute(setup::toErrorState);
        } catch (RuntimeException never) {
            // There is no connection loop, so nothing was made on it.
            execute(this::inErrorState0);
        }
    }

    private void failDestinations0() {
        Throwable why = cause;
        for (VerbsDestination destination : new ArrayList<>(destinations)) {
            destination.fail0(why == null ? new ConnectionException(this + " were closed by this side") : why);
        }
    }

    @Override
    boolean isDraining() {
        return state == State.DRAINING;
    }

    @Override
    void checkDrained() {
        if (state == State.DRAINING
                && draining.next(sends.areAllBack() && receives.areAllBack(), false, queuePair != null)
                        == Draining.Step.DESTROY) {
            destroy0();
        }
    }

    @Override
    void destroy0() {
        List<VerbsDestination> left = List.copyOf(destinations);
        try {
            setup.execute(() -> {
                try {
                    setup.destroy(left);
                } catch (Throwable thrown) {
                    LOG.error("What is left of {} could not be destroyed", this, thrown);
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
        LoopDevice queues = loopDevice;
        QueuePair made = queuePair;
        if (queues != null && made != null) {
            // Completions that the device wrote before the queue pair was destroyed.
            queues.pollAll();
            boolean anything = sends.count() > 0 || receives.hasRest();
            sends.completeRest(queuePairGone);
            receives.completeRest(queuePairGone);
            if (anything) {
                onBatchEnd();
            }
            queues.remove(index);
            required(device).events().remove(made);
        }
        failDestinations0();
        LoopDevice.LoopQueue reserved = loopQueue;
        if (queues != null && reserved != null && queuePairGone) {
            loopQueue = null;
            queues.release(reserved, reservedEntries(), null);
        }
        state = State.CLOSED;
        membership.leave0();
        try {
            handler.onClosed(this, cause);
        } catch (Throwable thrown) {
            LOG.warn("onClosed of {} threw", this, thrown);
        }
    }

    // ---- properties

    private static <T> T required(@Nullable T value) {
        return Objects.requireNonNull(value);
    }

    private <T> T opened(@Nullable T value) {
        if (value == null) {
            throw new IllegalStateException("known from onOpened on");
        }
        return value;
    }

    @Override
    public DatagramCapabilities capabilities() {
        return opened(capabilities);
    }

    @Override
    public MemoryDomain memoryDomain() {
        opened(capabilities);
        return required(device).memoryDomain();
    }

    @Override
    public InetSocketAddress localAddress() {
        opened(capabilities);
        return setup.localAddress();
    }

    @Override
    public DatagramPeer self() {
        opened(capabilities);
        return setup.self();
    }

    @Override
    public String toString() {
        return "the datagrams at " + VerbsProvider.format(requested);
    }
}
