package org.verbena.transport.verbs;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.Cm;
import org.verbena.transport.ProviderException;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.Verbs;

/**
 * The devices in use: each from its first connection until it is removed or fails. Then everything on it ends, and this
 * process closes it, so that the system can remove it and it can come back.
 *
 * <pre>{@code
 *   in use --removed, or failed: lose0--> LOST
 *          --connections and queues are gone, pools closed: release0--> memory and domain closed
 *          --Cm.devices()--> gone
 * }</pre>
 *
 * <p>Memory that the program has registered, and buffers that it has not released, keep a lost device open: the log
 * says so, and {@code release0} tries again.
 */
final class VerbsDevices {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsDevices.class);

    /** Connections need about so long to end. */
    private static final long FIRST_RETRY_MILLIS = 20;

    /** From here on it is the program that keeps the device open: a warning says so. */
    private static final long WARN_MILLIS = 1_000;

    private static final long LAST_RETRY_MILLIS = 10_000;

    private final VerbsProvider provider;
    private final ConcurrentHashMap<Context, VerbsDevice> inUse = new ConcurrentHashMap<>();

    /** What is held while the device of a name is made, so that one that does not answer holds up no other. */
    private final ConcurrentHashMap<String, Object> making = new ConcurrentHashMap<>();

    private final Set<VerbsListener> listeners = ConcurrentHashMap.newKeySet();
    private final Set<DatagramSetup> datagrams = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean isSearchAsked = new AtomicBoolean();

    /** For tests: the connection loop ends. */
    private volatile boolean isClosed;

    VerbsDevices(VerbsProvider provider) {
        this.provider = provider;
    }

    /**
     * What is shared by all endpoints of a device; made with the first one. Any thread.
     *
     * @throws ProviderException it was removed, or has failed
     */
    VerbsDevice of(Context context) {
        VerbsDevice known = inUse.get(context);
        if (known == null) {
            synchronized (making.computeIfAbsent(context.device().name(), missing -> new Object())) {
                known = inUse.get(context);
                if (known == null) {
                    ConnectionLoop loop = provider.connectionLoopOf(context);
                    known = new VerbsDevice(context, this, loop);
                    loop.watch(known);
                    inUse.put(context, known);
                }
            }
        }
        known.checkPresent();
        return known;
    }

    /**
     * Checks that nothing is known of a device's loss. Any thread.
     *
     * @throws ProviderException it was removed, or has failed, and is not closed yet
     */
    void checkPresent(Context context) {
        VerbsDevice known = inUse.get(context);
        if (known != null) {
            known.checkPresent();
        }
    }

    /** Any thread. */
    long registeredBytes() {
        long bytes = 0;
        for (VerbsDevice device : inUse.values()) {
            bytes += device.memoryDomain().registeredBytes();
        }
        return bytes;
    }

    void add(VerbsListener listener) {
        listeners.add(listener);
    }

    void remove(VerbsListener listener) {
        listeners.remove(listener);
    }

    void add(DatagramSetup endpoint) {
        datagrams.add(endpoint);
    }

    void remove(DatagramSetup endpoint) {
        datagrams.remove(endpoint);
    }

    /** A device was removed: finds out which. Any thread. */
    void findRemoved() {
        if (!isClosed && isSearchAsked.compareAndSet(false, true)) {
            provider.connectionLoop().loop().execute(this::loseRemoved0);
        }
    }

    private void loseRemoved0() {
        isSearchAsked.set(false);
        List<Context> present = present();
        if (present != null) {
            for (VerbsDevice device : inUse.values()) {
                if (!present.contains(device.context())) {
                    device.connectionLoop().loop().execute(() -> lose0(device, VerbsDevice.REMOVED));
                }
            }
        }
    }

    /** The devices that are there, after closing others that have nothing on them; null if that is not known. */
    private static @Nullable List<Context> present() {
        try {
            List<Context> present = Cm.devices();
            // librdmacm says the same of a list that it could not get, for want of a descriptor for instance.
            return present.isEmpty() && !Verbs.devices().isEmpty() ? null : present;
        } catch (NativeRdmaException unreadable) {
            LOG.debug("The devices cannot be listed", unreadable);
            return null;
        }
    }

    /**
     * A device is gone or unusable: ends what is on it. The device's connection loop.
     *
     * @param device which one
     * @param what what happened to it: "was removed"
     */
    void lose0(VerbsDevice device, String what) {
        if (!isClosed && device.lose(what)) {
            device.connectionLoop().unwatch(device);
            listeners.forEach(listener -> listener.onDeviceLost(device.context(), what));
            datagrams.forEach(endpoint -> endpoint.onDeviceLost(device.context()));
            releaseLater(device, what, FIRST_RETRY_MILLIS);
        }
    }

    private void release0(VerbsDevice device, String what, long waitedMillis) {
        if (isClosed) {
            return;
        }
        String hindrance = device.tryClose();
        if (hindrance == null) {
            inUse.remove(device.context(), device);
            List<Context> present = present();
            if (!device.context().isOpen() || (present != null && present.contains(device.context()))) {
                LOG.info("{} {}, and this process has closed it", device.name(), what);
                return;
            }
            hindrance = "librdmacm closes a device that was removed when there is another one";
        }
        if (waitedMillis <= WARN_MILLIS && 2 * waitedMillis > WARN_MILLIS) {
            LOG.warn("{} {}, but this process still has it open: {}", device.name(), what, hindrance);
        }
        releaseLater(device, what, Math.min(2 * waitedMillis, LAST_RETRY_MILLIS));
    }

    private void releaseLater(VerbsDevice device, String what, long millis) {
        device.connectionLoop().loop().schedule(() -> release0(device, what, millis), millis, TimeUnit.MILLISECONDS);
    }

    /** For tests: closes no more devices, since the connection loop ends. */
    void stop() {
        isClosed = true;
    }

    /** For tests: gives everything back. When nothing uses the provider any more. */
    void close() {
        inUse.values().forEach(VerbsDevice::close);
        inUse.clear();
    }
}
