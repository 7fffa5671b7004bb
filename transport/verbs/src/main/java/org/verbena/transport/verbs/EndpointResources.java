package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.verbena.cm.ConnectionParameters;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.ffm.Siw;

/**
 * The resources that an endpoint holds on its device: room in a completion queue, its queue pair, and a place among the
 * endpoints of its loop. The loop's thread alone.
 */
final class EndpointResources {
    /** Receive buffers are pinned for every connection, so the default stays small. */
    private static final int RECEIVE_BUFFER_BYTES = 16 << 10;

    private final EndpointOptions options;
    private final SendPath sends;
    private final ReceivePath receives;

    private @Nullable VerbsDevice device;
    private @Nullable LoopDevice loopDevice;
    private LoopDevice.@Nullable LoopQueue loopQueue;
    private @Nullable QueuePair queuePair;
    private @Nullable ConnectionWindows windows;
    private int port;
    private int index;
    private long maxMessageBytes;

    EndpointResources(EndpointOptions options, SendPath sends, ReceivePath receives) {
        this.options = options;
        this.sends = sends;
        this.receives = receives;
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
        checkLimits(used);
        LoopDevice queues = loop.deviceFor(used);
        boolean shared = options.sharedReceiveQueue() && used.attributes().maxSharedReceiveQueues() > 0;
        if (options.sharedReceiveQueue() && !shared) {
            throw new ConnectionException(used.name() + " has no shared receive queues: connect without one");
        }
        LoopDevice.LoopQueue completions = queues.reserve(reservedEntries(used), shared);
        loopDevice = queues;
        loopQueue = completions;
        maxMessageBytes = Math.min(Integer.MAX_VALUE, used.port(port).maxMessageBytes());
        QueuePairOptions wanted = QueuePairOptions.reliable(
                completions.queue(),
                new QueuePairCapabilities(
                        sendWorkRequests(used),
                        receives.depth(),
                        options.maxSges(),
                        shared ? 0 : options.maxSges(),
                        // siw sends small messages correctly only if they are inline.
                        used.isSiw() ? Math.max(options.maxInlineBytes(), Siw.SHORT_BYTES) : options.maxInlineBytes()));
        if (!shared) {
            return wanted;
        }
        VerbsSharedReceiveQueue common = queues.sharedReceiveQueue();
        receives.share(common);
        return wanted.withSharedReceives(common.queue());
    }

    private int reservedEntries(VerbsDevice used) {
        return sendWorkRequests(used) + receives.depth();
    }

    /**
     * The work requests that may be outstanding: on siw any read may be in two parts, and binding windows takes some
     * too.
     */
    private int sendWorkRequests(VerbsDevice used) {
        return (used.isSiw() ? 2 * options.sendDepth() : options.sendDepth()) + bindings(used);
    }

    private static int bindings(VerbsDevice used) {
        return used.hasQueuePairWindows() ? ConnectionWindows.MAX_BINDINGS : 0;
    }

    private void checkLimits(VerbsDevice used) {
        DeviceAttributes limits = used.attributes();
        checkLimit(
                used,
                "sendDepth",
                options.sendDepth(),
                (limits.maxWorkRequests() - bindings(used)) / (used.isSiw() ? 2 : 1));
        checkLimit(used, "receiveDepth", receives.depth(), limits.maxWorkRequests());
        checkLimit(used, "maxSges", options.maxSges(), limits.maxSges());
        if (used.isIwarp() && options.minRnrTimerMicros() != EndpointOptions.DEVICE_DEFAULT) {
            throw new ConnectionException("minRnrTimerMicros " + options.minRnrTimerMicros()
                    + " is for InfiniBand and RoCE: " + used.name() + " is iWARP, which never repeats a send");
        }
    }

    private static void checkLimit(VerbsDevice used, String what, int asked, int limit) {
        if (asked > limit) {
            throw new ConnectionException(
                    what + " " + asked + " is over the limit of " + used.name() + ", which is " + limit);
        }
    }

    /**
     * The queue pair is made: completions find the endpoint from now on.
     *
     * @param made the queue pair
     * @param endpoint whose it is
     * @throws ConnectionException there is no place for another endpoint
     */
    void add(QueuePair made, VerbsEndpoint endpoint) {
        VerbsDevice used = device();
        LoopDevice queues = loopDevice();
        index = queues.add(endpoint);
        int generation = queues.generation(index);
        queuePair = made;
        if (used.hasQueuePairWindows()) {
            windows = new ConnectionWindows(used.memoryDomain(), endpoint);
        }
        VerbsSharedReceiveQueue shared = receives.shared();
        sends.prepared(made.sendQueue(), used, index, generation);
        receives.prepared(shared == null ? made.receiveQueue() : null, used, index, generation);
        if (shared != null) {
            queues.share(made.number(), endpoint);
        }
        used.add(made, endpoint);
    }

    /** What the queue pair can do, whatever the peer can. */
    EndpointCapabilities capabilities() {
        VerbsDevice used = device();
        VerbsSharedReceiveQueue shared = receives.shared();
        boolean iwarp = used.isIwarp();
        int readSges = Math.min(options.maxSges(), Math.max(1, used.attributes().maxReadSges()));
        return new EndpointCapabilities.Builder()
                .sendDepth(options.sendDepth())
                .receiveDepth(shared == null ? receives.depth() : shared.depth())
                .maxSges(shared == null ? options.maxSges() : Math.min(options.maxSges(), shared.maxSges()))
                .maxReadSges(iwarp ? 1 : readSges)
                .maxInlineBytes(VerbsEndpoint.required(queuePair).sendQueue().maxInlineBytes())
                .readDepth(initiatorDepth())
                .maxMessageBytes(maxMessageBytes)
                .atomics(used.hasAtomics())
                .immediateData(used.hasImmediateData())
                // In the lab siw ends the connection on it, and soft RoCE delivers the message without telling the
                // receiver that a key was invalidated; on adapters it is for memory windows, and was not seen on one.
                .sendWithInvalidate(false)
                .connectionMemory(windows != null)
                .readSinkNeedsRemoteWrite(iwarp)
                .receiveBufferBytes(RECEIVE_BUFFER_BYTES)
                .build();
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

    @Nullable VerbsDevice deviceIfKnown() {
        return device;
    }

    int port() {
        return port;
    }

    /** Memory for the peer alone; null if the device cannot do that. */
    @Nullable ConnectionWindows windows() {
        return windows;
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

    /** Whether an object of the device that failed is one that the endpoint cannot do without. */
    boolean dependsOn(@Nullable VerbsObject object) {
        VerbsSharedReceiveQueue shared = receives.shared();
        return (loopQueue != null && loopQueue.queue() == object) || (shared != null && shared.queue() == object);
    }

    // ---- the end

    /** Completions do not find the endpoint any more. */
    void remove() {
        QueuePair made = queuePair;
        if (made != null) {
            loopDevice().remove(index);
            device().remove(made);
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
            loopDevice().release(reserved, reservedEntries(device()), receives.shared() != null);
        }
    }
}
