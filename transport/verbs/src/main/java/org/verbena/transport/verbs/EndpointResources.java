package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.verbena.cm.ConnectionParameters;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.ffm.Siw;

/**
 * The resources that an endpoint holds on its device: room in a completion queue, its queue pair, and a place among the
 * endpoints of its loop. Not thread-safe; confined to the loop's thread.
 */
final class EndpointResources {
    /** Receive buffers are pinned for every busy connection, so the default stays small. */
    private static final int RECEIVE_BUFFER_BYTES = 16 << 10;

    /** A connection that was never busy keeps 13 of these. A handshake with a pre-shared key fits. */
    private static final int FIRST_RECEIVE_BYTES = 256;

    private final EndpointOptions options;
    private final CompletionReports reports;
    private final ReceivePath receives;

    private @Nullable VerbsDevice device;
    private @Nullable LoopDevice loopDevice;
    private LoopDevice.@Nullable LoopQueue loopQueue;
    private @Nullable QueuePair queuePair;
    private @Nullable ConnectionWindows windows;
    private int port;
    private int index;
    private long maxMessageBytes;
    private double gigabitsPerSecond;
    private int sendDepth;
    private int bindings;

    EndpointResources(EndpointOptions options, CompletionReports reports) {
        this.options = options;
        this.reports = reports;
        receives = reports.receives();
    }

    /**
     * The device is known: takes what the queue pair needs of it.
     *
     * @param used the device
     * @param portNumber of it
     * @param loop whose completion queue is used
     * @return what to make
     * @throws ConnectionException the device does not have what was asked for
     */
    QueuePairOptions reserve(VerbsDevice used, int portNumber, CompletionIoHandler loop) {
        device = used;
        port = portNumber;
        applyLimits(used);
        reports.prepare(used, sendDepth);
        LoopDevice queues = loop.deviceFor(used);
        boolean shared = options.sharedReceiveQueue() && used.attributes().maxSharedReceiveQueues() > 0;
        if (options.sharedReceiveQueue() && !shared) {
            throw new ConnectionException(used.name() + " has no shared receive queues: connect without one");
        }
        LoopDevice.LoopQueue completions = queues.reserve(reservedEntries(used), shared);
        loopDevice = queues;
        loopQueue = completions;
        PortAttributes link = used.port(port);
        maxMessageBytes = Math.min(Integer.MAX_VALUE, link.maxMessageBytes());
        gigabitsPerSecond = link.gigabitsPerSecond();
        QueuePairOptions wanted = QueuePairOptions.reliable(
                completions.queue(),
                new QueuePairCapabilities(
                        sendWorkRequests(used),
                        receives.depth(),
                        options.maxSges(),
                        shared ? 0 : receives.maxSges(),
                        // siw sends small messages correctly only if they are inline.
                        used.isSiw() ? Math.max(options.maxInlineBytes(), Siw.SHORT_BYTES) : options.maxInlineBytes()));
        if (!shared) {
            return wanted;
        }
        VerbsSharedReceiveQueue common = queues.sharedReceiveQueue();
        common.addUser();
        receives.share(common);
        return wanted.withSharedReceives(common.queue());
    }

    private int reservedEntries(VerbsDevice used) {
        return sendWorkRequests(used) + receives.depth();
    }

    /**
     * The work requests that may be outstanding: on siw any read may be in two parts, and binding windows and asking
     * for completions takes some too.
     */
    private int sendWorkRequests(VerbsDevice used) {
        return sendDepth * workRequestsASlot(used) + bindings + SendStaging.MAX_ASKING;
    }

    private static int workRequestsASlot(VerbsDevice used) {
        return used.isSiw() ? SiwSendPath.WORK_REQUESTS_A_SLOT : 1;
    }

    /** Reduces what was wished for to what the device has. */
    private void applyLimits(VerbsDevice used) {
        DeviceAttributes limits = used.attributes();
        bindings = used.resources().hasQueuePairWindows() ? ConnectionWindows.MAX_BINDINGS : 0;
        sendDepth = within(
                used,
                "sendDepth",
                options.sendDepth(),
                EndpointOptions.DEFAULTS.sendDepth(),
                (limits.maxWorkRequests() - bindings - SendStaging.MAX_ASKING) / workRequestsASlot(used));
        int receiveDepth = within(
                used,
                "receiveDepth",
                receives.depth(),
                EndpointOptions.DEFAULTS.receiveDepth(),
                limits.maxWorkRequests());
        // What the device reports is true for receives; whether a send can have more is found by trial.
        int sges = within(used, "maxSges", options.maxSges(), EndpointOptions.DEFAULTS.maxSges(), limits.maxSges());
        receives.limit(receiveDepth, sges);
        if (used.isIwarp()) {
            refuse(used, "minRnrTimerMicros", options.minRnrTimerMicros(), "which never repeats a send");
            refuse(used, "ackTimeoutMicros", options.ackTimeoutMicros(), "where TCP repeats what is lost");
        }
    }

    private static void refuse(VerbsDevice used, String what, int asked, String why) {
        if (asked != EndpointOptions.DEVICE_DEFAULT) {
            throw new ConnectionException(
                    what + " " + asked + " is for InfiniBand and RoCE: " + used.name() + " is iWARP, " + why);
        }
    }

    /** The limit of a wish; a demand is met or refused. */
    static int within(VerbsDevice used, String what, int asked, int greatestWish, int limit) {
        if (asked > limit && (asked > greatestWish || limit < 1)) {
            throw new ConnectionException(
                    what + " " + asked + " is over the limit of " + used.name() + ", which is " + Math.max(0, limit));
        }
        return Math.min(asked, limit);
    }

    /**
     * The queue pair is made: completions find the endpoint from now on.
     *
     * @param made the queue pair
     * @param endpoint its owner
     * @throws ConnectionException there is no place for another endpoint
     */
    void add(QueuePair made, VerbsEndpoint endpoint) {
        VerbsDevice used = device();
        LoopDevice queues = loopDevice();
        VerbsSharedReceiveQueue shared = receives.shared();
        if (shared != null && shared.isBroken()) {
            throw new ConnectionException("the shared receive queue of " + used.name() + " has failed: connect again");
        }
        index = queues.add(endpoint);
        int generation = queues.generation(index);
        queuePair = made;
        if (bindings > 0) {
            windows = new ConnectionWindows(
                    used.memoryDomain(), endpoint, used.family().bindsBehindWork());
        }
        reports.sends().prepared(made.sendQueue(), used, endpoint.peerTakesWrites(), index, generation);
        receives.prepared(shared == null ? made.receiveQueue() : null, used, index, generation);
        if (shared != null) {
            queues.share(made.number(), endpoint);
        }
        used.events().add(made, endpoint);
    }

    /** What the queue pair can do, whatever the peer can. */
    EndpointCapabilities capabilities() {
        VerbsDevice used = device();
        VerbsSharedReceiveQueue shared = receives.shared();
        boolean iwarp = used.isIwarp();
        int sendSges = Math.min(
                options.maxSges(), VerbsEndpoint.required(queuePair).sendQueue().maxSges());
        int readSges = Math.min(sendSges, Math.max(1, used.attributes().maxReadSges()));
        return EndpointCapabilities.MINIMAL.with(o -> {
            o.sendDepth = sendDepth;
            o.receiveDepth = shared == null ? receives.depth() : shared.depth();
            o.maxSges = sendSges;
            o.maxReceiveSges = shared == null ? receives.maxSges() : shared.maxSges();
            o.maxReadSges = iwarp ? 1 : readSges;
            o.maxInlineBytes = used.inlineBytes(VerbsEndpoint.required(queuePair));
            o.readDepth = initiatorDepth();
            o.maxMessageBytes = maxMessageBytes;
            o.atomics = used.hasAtomics();
            o.immediateData = used.hasImmediateData();
            // In the lab siw ends the connection on it, and soft RoCE delivers the message without reporting to the
            // receiver that a key was invalidated; on adapters it is for memory windows, and was not tested on one.
            o.sendWithInvalidate = false;
            o.connectionMemory = windows != null;
            o.readSinkNeedsRemoteWrite = iwarp;
            o.receiveBufferBytes = RECEIVE_BUFFER_BYTES;
            o.firstReceiveBytes = FIRST_RECEIVE_BYTES;
        });
    }

    /** The longest message that is faster to send than to let the peer read. */
    int rendezvousBytes(int peerReceiveBytes) {
        VerbsDevice used = device();
        if (!used.family().isHardware()) {
            return RendezvousThreshold.MEASURED_BYTES;
        }
        // This is for a message in the pool. One in other memory is registered in any case, for fragments too.
        if (windows != null) {
            int commands = used.family().bindsBehindWork() ? 0 : 2; // to bind a window and to invalidate it
            return RendezvousThreshold.bytes(gigabitsPerSecond, commands, 0, peerReceiveBytes);
        }
        // On iWARP the receiver registers its memory as well, so that the sender can write into it.
        int registrations = used.isIwarp() ? 2 : 1;
        return RendezvousThreshold.bytes(gigabitsPerSecond, 2 * registrations, registrations, peerReceiveBytes);
    }

    private int initiatorDepth() {
        return Math.min(options.readDepth(), device().attributes().maxReadsAsInitiator());
    }

    /**
     * What to connect or to accept with.
     *
     * @param asked what the peer asked for, null when connecting
     */
    ConnectionParameters parameters(@Nullable ConnectionParameters asked) {
        int responderResources =
                Math.min(options.readDepth(), device().attributes().maxReadsAsTarget());
        int initiatorDepth = initiatorDepth();
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

    // ---- what is there

    /** The device, which is known from {@link #reserve} on. */
    VerbsDevice device() {
        return VerbsEndpoint.required(device);
    }

    /** What the queue pair is made on, known from {@link #reserve} on. */
    ProtectionDomain domain() {
        return loopDevice().domain();
    }

    @Nullable VerbsDevice deviceIfKnown() {
        return device;
    }

    int port() {
        return port;
    }

    /** Memory only for the peer; null if the device cannot do that. */
    @Nullable ConnectionWindows windows() {
        return windows;
    }

    /** The queue pair is about to be destroyed. The connection loop's thread. */
    void endWindows() {
        ConnectionWindows used = windows;
        if (used != null) {
            used.end();
        }
    }

    /** No binding completes any more. */
    void abandonWindows0() {
        ConnectionWindows used = windows;
        if (used != null) {
            used.abandon0();
        }
    }

    /**
     * Binds a window for the first time on the device, since some announce windows and refuse to bind them: then the
     * peer's memory is in plain regions, on this connection and on later ones. The connection has just been made, so
     * nothing is out.
     *
     * @throws ConnectionException memory was registered with a window already
     */
    void proveWindows() {
        ConnectionWindows known = windows;
        if (known != null && !device().resources().windowsAreProven() && !known.prove(device(), reports.sends())) {
            if (known.hasWaiting()) { // it is given back with the connection
                throw new ConnectionException(
                        device().name() + " has no memory windows, though it announces them: memory"
                                + " registered on this connection cannot be opened to its peer; connect again");
            }
            windows = null;
        }
    }

    private LoopDevice loopDevice() {
        return VerbsEndpoint.required(loopDevice);
    }

    boolean hasQueuePair() {
        return queuePair != null;
    }

    /** Takes all completions off the loop's queues, where there are any. */
    void pollAll() {
        LoopDevice queues = loopDevice;
        if (queues != null) {
            queues.pollAll();
        }
    }

    boolean completesOn(LoopDevice.LoopQueue queue) {
        return loopQueue == queue;
    }

    // ---- the end

    /** Completions do not find the endpoint any more. */
    void remove() {
        QueuePair made = queuePair;
        if (made != null) {
            loopDevice().remove(index);
            device().events().remove(made);
            if (receives.shared() != null) {
                loopDevice().unshare(made.number());
            }
        }
    }

    /** The queue pair is destroyed: gives back what it had of the completion queue. Idempotent. */
    void release() {
        LoopDevice.LoopQueue reserved = loopQueue;
        if (reserved != null) {
            loopQueue = null;
            loopDevice().release(reserved, reservedEntries(device()), receives.shared());
        }
    }
}
