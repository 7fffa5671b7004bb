package org.verbena.api.internal.memory;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.verbena.transport.MemoryDomain;

/**
 * Calls the owners of regions of a device when it is lost. A domain keeps its listeners for as long as it lives, so it
 * gets one for all of them. Any thread.
 */
final class LossWatch {
    private static final ConcurrentMap<MemoryDomain, LossWatch> BY_DEVICE = new ConcurrentHashMap<>();

    private final MemoryDomain device;

    // Guarded by this.
    private final Set<ServerRegions> memories = new HashSet<>();
    private boolean isLost;

    private LossWatch(MemoryDomain device) {
        this.device = device;
    }

    private static LossWatch of(MemoryDomain device) {
        LossWatch known = BY_DEVICE.get(device);
        if (known != null) {
            return known;
        }
        LossWatch made = new LossWatch(device);
        known = BY_DEVICE.putIfAbsent(device, made);
        if (known != null) {
            return known;
        }
        device.whenLost(made::lose);
        return made;
    }

    /** Tells the memory when the device is lost: at once, if that has happened. */
    static void add(MemoryDomain device, ServerRegions memory) {
        LossWatch watch = of(device);
        synchronized (watch) {
            if (!watch.isLost) {
                watch.memories.add(memory);
                return;
            }
        }
        memory.onLost(device);
    }

    /** The memory has no region of the device any more. */
    static void remove(MemoryDomain device, ServerRegions memory) {
        LossWatch watch = BY_DEVICE.get(device);
        if (watch != null) {
            synchronized (watch) {
                watch.memories.remove(memory);
            }
        }
    }

    private void lose() {
        List<ServerRegions> all;
        synchronized (this) {
            isLost = true;
            all = List.copyOf(memories);
            memories.clear();
        }
        BY_DEVICE.remove(device);
        all.forEach(memory -> memory.onLost(device));
    }
}
