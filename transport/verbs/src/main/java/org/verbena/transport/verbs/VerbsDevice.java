package org.verbena.transport.verbs;

import java.util.BitSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmId;
import org.verbena.transport.ProviderException;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.device.AtomicCapability;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.DriverFamily;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.ffm.Siw;

/**
 * A device, until it is lost, and what it can do. {@link DeviceLimits} finds what no query returns, {@link
 * DeviceResources} has what is made on it for all endpoints, and {@link DeviceEvents} the endpoints. Any thread, unless
 * it says otherwise.
 */
final class VerbsDevice {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsDevice.class);

    /** The argument of {@link #lose} for a device that is not there any more. */
    static final String REMOVED = "was removed";

    private final Context context;
    private final DeviceAttributes attributes;
    private final DeviceResources resources;

    /** The queues that loops have on it. */
    private final Set<LoopDevice> loops = ConcurrentHashMap.newKeySet();

    /** The processors that its loops are kept on; empty for any. */
    private final BitSet near;

    /** Each loop's completion queues take the next vector, whatever group the loop is of: so interrupts are spread. */
    private final AtomicInteger nextVector = new AtomicInteger();

    private final DeviceLimits limits = new DeviceLimits(this);
    private final DeviceEvents events;

    /** Watches its events and closes it, for all its life, also if its connections get another one later. */
    private final ConnectionLoop connectionLoop;

    /**
     * What happened to it, so that nothing on it will work again: null while all is well. Written by the connection
     * loop.
     */
    private volatile @Nullable String lost;

    VerbsDevice(Context context, VerbsDevices devices, ConnectionLoop connectionLoop) {
        this.context = context;
        this.connectionLoop = connectionLoop;
        events = new DeviceEvents(this, devices);
        attributes = context.queryDevice(); // the context knows its family from here on
        checkEnvironment(context.driverFamily(), System.getenv());
        near = ProcessorAffinity.near(context.device());
        resources = new DeviceResources(context, attributes);
    }

    /**
     * Refuses settings with which a driver's library would end the process.
     *
     * @throws ProviderException there is one
     */
    static void checkEnvironment(DriverFamily family, Map<String, String> environment) {
        if (family == DriverFamily.MLX5 && "1".equals(environment.get("MLX5_SINGLE_THREADED"))) {
            throw new ProviderException("MLX5_SINGLE_THREADED=1 is set, with which libmlx5 ends a process that uses a"
                    + " device from several threads, as Verbena does: unset it");
        }
    }

    Context context() {
        return context;
    }

    /** The completion vector of another loop: of those whose interrupts come to its processors, if that is known. */
    int nextVector() {
        int next = nextVector.getAndIncrement() & Integer.MAX_VALUE;
        return near.isEmpty() || !family().hasNearVectorsFirst() ? next : next % near.cardinality();
    }

    /** The processors that its loops are kept on; empty for any. */
    BitSet near() {
        return near;
    }

    String name() {
        return context.device().name();
    }

    DeviceAttributes attributes() {
        return attributes;
    }

    /** What happens on it, and whom that concerns. */
    DeviceEvents events() {
        return events;
    }

    /** What is made on it for all endpoints. */
    DeviceResources resources() {
        return resources;
    }

    VerbsMemoryDomain memoryDomain() {
        return resources.memoryDomain();
    }

    /**
     * iWARP has rules of its own: the client sends first, no immediate data, reads with one sink that the peer may
     * write.
     */
    boolean isIwarp() {
        return context.device().transportType() == TransportType.IWARP;
    }

    /** Soft iWARP, to which {@link Siw#SHORT_BYTES} matters. */
    boolean isSiw() {
        return Siw.is(attributes.vendorId());
    }

    boolean hasAtomics() {
        return attributes.atomics() != AtomicCapability.NONE;
    }

    /** What its driver is like. */
    DriverFamily family() {
        return context.driverFamily();
    }

    /** RFC 7306 gives iWARP immediate data, but no adapter with a driver in Linux was seen to have it. */
    boolean hasImmediateData() {
        return !isIwarp();
    }

    /**
     * Makes a queue pair that is connected by hand, as {@link #createQueuePair(CmId, ProtectionDomain,
     * QueuePairOptions)} does otherwise.
     *
     * @param domain of its loop
     * @param wanted its sizes are the most that it gets
     * @throws VerbsException the device refused
     * @throws ProviderException the device is lost
     */
    QueuePair createQueuePair(ProtectionDomain domain, QueuePairOptions wanted) {
        checkPresent();
        return domain.createQueuePair(limits.shrink(wanted));
    }

    /**
     * Makes the queue pair of an id, with fewer inline bytes and elements of a send than wanted if the device has no
     * more.
     *
     * @throws NativeRdmaException the device refused
     * @throws ProviderException the device is lost
     */
    QueuePair createQueuePair(CmId id, ProtectionDomain domain, QueuePairOptions wanted) {
        checkPresent();
        return id.createQueuePair(domain, limits.shrink(wanted));
    }

    /** How many bytes a queue pair's work requests have inline: a driver may say more than was asked for. */
    int inlineBytes(QueuePair made) {
        return family().hasInline() ? made.sendQueue().maxInlineBytes() : 0;
    }

    /** Adds the SGEs of a list, checked by {@link PostChecks#receive}, to the receive that was begun last. */
    void addSges(ReceiveQueue queue, ScatterGatherList buffers) {
        int count = buffers.count();
        for (int i = 0; i < count; i++) {
            queue.uncheckedSge(
                    buffers.address(i), buffers.length(i), buffers.region(i).localKey());
        }
        if (count == 0 && isIwarp()) {
            queue.sge(resources.nothing(), 0, 0);
        }
    }

    ConnectionLoop connectionLoop() {
        return connectionLoop;
    }

    PortAttributes port(int number) {
        return context.queryPort(Math.max(1, number));
    }

    /** Whether it can have reliable connections: Amazon's EFA and Cisco's usNIC have a transport of their own. */
    static boolean connects(Context context) {
        TransportType transport = context.device().transportType();
        return transport == TransportType.IB || transport == TransportType.IWARP;
    }

    /** Whether it can have the datagrams of InfiniBand and RoCE. Does not ask the device, which might not answer. */
    static boolean hasDatagrams(Context context) {
        Device device = context.device();
        return device.transportType() == TransportType.IB
                && DriverFamily.of(device.driverName(), 0).hasAddressHandles();
    }

    /** Whether any port is up. */
    static boolean isUp(Context context) {
        try {
            int ports = context.queryDevice().ports();
            for (int port = 1; port <= ports; port++) {
                if (context.queryPort(port).state() == PortState.ACTIVE) {
                    return true;
                }
            }
            return false;
        } catch (IllegalStateException removed) {
            LOG.debug("{} was removed meanwhile", context, removed);
            return false;
        }
    }

    /** A loop has queues here from now on. */
    void add(LoopDevice queues) {
        loops.add(queues);
        if (lost != null) {
            queues.retire();
        }
    }

    /** The queues of a loop are gone, or given up. */
    void remove(LoopDevice queues) {
        loops.remove(queues);
    }

    /**
     * The device is gone or useless: nothing on it will work again, so its connections end, and then loops give their
     * queues back. The connection loop's thread.
     *
     * @param what what happened to it: "was removed"
     * @return false if it was lost before
     */
    boolean lose(String what) {
        if (lost != null) {
            return false;
        }
        lost = what;
        LOG.error("{} {}; {} connections are lost", name(), what, events.endpoints());
        events.lose(what);
        loops.forEach(LoopDevice::retire);
        return true;
    }

    boolean isLost() {
        return lost != null;
    }

    /** What happened to it; null while all is well. */
    @Nullable String loss() {
        return lost;
    }

    /** A completion queue or a shared receive queue of some loop has failed. */
    void onQueueError(@Nullable VerbsObject source) {
        loops.forEach(queues -> queues.onQueueError(source));
    }

    /**
     * Checks that it is not lost.
     *
     * @throws ProviderException it is
     */
    void checkPresent() {
        String what = lost;
        if (what != null) {
            throw new ProviderException(name() + " " + what);
        }
    }

    /**
     * Releases what is left of a lost device, once no connection and no loop needs it. The connection loop's thread.
     *
     * @return what prevents that; null if nothing is left
     */
    @Nullable String tryClose() {
        int left = events.endpoints();
        if (left > 0) {
            return left + " connections have not ended";
        }
        if (!loops.isEmpty()) {
            return "its completion queues are in use";
        }
        return resources.tryClose();
    }

    /** For tests: gives everything back. */
    void close() {
        resources.close();
    }

    @Override
    public String toString() {
        return name() + (isIwarp() ? " (iWARP)" : "");
    }
}
