package org.verbena.transport.verbs;

import java.lang.foreign.Arena;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.DeviceCapability;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.ffm.Siw;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;

/**
 * What is made on a device for all endpoints, and tried for that: its memory, with or without windows and relaxed
 * ordering. Any thread, unless it says otherwise.
 */
final class DeviceResources {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceResources.class);

    private final Context context;
    private final VerbsMemoryDomain memoryDomain;

    /** Placeholder for zero-length receives: siw rejects a receive without an SGE. */
    private final MemoryRegion nothing;

    /** Whether windows are used: announced, and nothing has shown otherwise. Written by any loop. */
    private volatile boolean usesWindows;

    /** Whether one was bound. Written by any loop. */
    private volatile boolean windowsAreProven;

    /** Occupies the page of siw's context at which no queue may begin; null on other devices. */
    private final @Nullable CompletionQueue siwPlug;

    /**
     * Makes them.
     *
     * @throws NativeRdmaException the device refused
     */
    DeviceResources(Context context, DeviceAttributes attributes) {
        this.context = context;
        siwPlug = Siw.is(attributes.vendorId()) ? plug(context) : null;
        ProtectionDomain domain = null;
        try {
            domain = context.allocateProtectionDomain();
            RelaxedOrdering wanted = RelaxedOrdering.wanted();
            boolean isRelaxed = context.driverFamily().isHardware()
                    && wanted != RelaxedOrdering.OFF
                    && takesRelaxedOrdering(domain);
            memoryDomain = new VerbsMemoryDomain(domain, isRelaxed ? wanted : RelaxedOrdering.OFF);
            usesWindows = announcesWindows(attributes) && makesWindow(domain);
            if (usesWindows) {
                memoryDomain.useWindows();
            }
            nothing = domain.registerMemory(
                    Arena.global().allocate(Long.BYTES),
                    usesWindows ? Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.MW_BIND) : Set.of(AccessFlag.LOCAL_WRITE));
        } catch (RuntimeException refused) {
            giveBack(domain);
            giveBack(siwPlug);
            throw refused;
        }
    }

    /**
     * Keeps siw from refusing a connection now and then, see {@link Siw}. Makes one queue that covers the pages from
     * the first free one to beyond the one in question; it costs 1 MiB of the kernel's memory.
     */
    private static @Nullable CompletionQueue plug(Context context) {
        try {
            return context.createCompletionQueue(Siw.ENTRIES_BEYOND_REFUSED_PAGE);
        } catch (VerbsException refused) {
            // Queues up to that very page exist already. A later queue may meet it; its connection is refused with the
            // reason.
            LOG.debug("{} keeps its 145th page", context, refused);
            return null;
        }
    }

    /** Tries it, since a driver may not support the flag although kernel and library know it. */
    private boolean takesRelaxedOrdering(ProtectionDomain domain) {
        try (Arena arena = Arena.ofConfined()) {
            NativeFailures.tryTwice(() -> domain.registerMemory(
                            arena.allocate(Long.BYTES), Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.RELAXED_ORDERING))
                    .close());
            return true;
        } catch (NativeRdmaException | UnsupportedOperationException refused) {
            LOG.debug("{} writes memory in order: {}", context.device().name(), refused.getMessage());
            return false;
        }
    }

    /** What it refuses for now is tried again with a connection. */
    private boolean makesWindow(ProtectionDomain domain) {
        try {
            NativeFailures.tryTwice(
                    () -> domain.allocateMemoryWindow(WindowType.TYPE_2).close());
            return true;
        } catch (NativeRdmaException refused) {
            if (NativeFailures.isForNow(refused.errno())) {
                return true;
            }
            LOG.info(
                    "{} announces memory windows but makes none ({}): plain regions are used instead",
                    context.device().name(),
                    refused.getMessage());
            return false;
        }
    }

    private boolean announcesWindows(DeviceAttributes attributes) {
        return context.device().transportType() != TransportType.IWARP
                && attributes.maxWindows() > 0
                && (attributes.capabilities().contains(DeviceCapability.MEM_WINDOW_TYPE_2A)
                        || attributes.capabilities().contains(DeviceCapability.MEM_WINDOW_TYPE_2B));
    }

    VerbsMemoryDomain memoryDomain() {
        return memoryDomain;
    }

    /** Memory of a few bytes that nothing uses. */
    MemoryRegion nothing() {
        return nothing;
    }

    /** Whether there are memory windows that belong to a queue pair, as far as is known. */
    boolean hasQueuePairWindows() {
        return usesWindows;
    }

    boolean windowsAreProven() {
        return windowsAreProven;
    }

    /** A window was bound. */
    void windowsWork() {
        windowsAreProven = true;
    }

    /**
     * Windows are announced, and there are none: from now on connections use plain regions, unless the device lacks
     * something only now.
     */
    void forgoWindows(int errno, String reason) {
        if (usesWindows && !NativeFailures.isForNow(errno)) {
            usesWindows = false;
            LOG.info(
                    "{} announces memory windows but refuses them ({}): plain regions are used instead",
                    context.device().name(),
                    reason);
        }
    }

    /**
     * Gives back what is left of a lost device. The connection loop's thread.
     *
     * @return what prevents that; null if nothing is left
     */
    @Nullable String tryClose() {
        memoryDomain.lose();
        try {
            nothing.close();
            memoryDomain.protectionDomain().close();
            if (siwPlug != null) {
                siwPlug.close();
            }
            return null;
        } catch (NativeRdmaException | IllegalStateException inUse) {
            return inUse.getMessage();
        }
    }

    /** For tests: gives everything back. */
    void close() {
        giveBack(nothing);
        giveBack(memoryDomain.protectionDomain());
        giveBack(siwPlug);
    }

    /** Destroys what was made, with a second attempt, and says so if that fails. */
    static void giveBack(@Nullable VerbsObject made) {
        for (int attempt = 1; made != null && attempt <= 2; attempt++) {
            try {
                made.close();
                return;
            } catch (NativeRdmaException | IllegalStateException refused) {
                LOG.warn("{} could not be given back, attempt {}", made, attempt, refused);
            }
        }
    }
}
