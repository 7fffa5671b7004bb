package org.verbena.tools.interop.pingpong;

import java.util.EnumSet;
import java.util.Set;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.Context;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.device.OnDemandOperation;
import org.verbena.verbs.queue.QueuePairType;

/**
 * The features that ping-pong uses and many devices lack.
 *
 * @param onDemand on-demand paging
 * @param implicit of the whole address space; with {@code onDemand}
 * @param prefetching prefetch the pages at the start; with {@code onDemand}
 * @param timestamps completions with timestamps
 * @param deviceMemory messages in device memory; without {@code onDemand}
 * @param newSend work request builders
 */
record PingPongFeatures(
        boolean onDemand,
        boolean implicit,
        boolean prefetching,
        boolean timestamps,
        boolean deviceMemory,
        boolean newSend) {
    static final PingPongFeatures NONE = onDemand(false);

    static PingPongFeatures onDemand(boolean wanted) {
        return new PingPongFeatures(wanted, false, false, false, false, false);
    }

    /** Refuses a device that lacks one of these. */
    void require(Context context, QueuePairType type, OnDemandOperation receive, int sizeBytes) {
        if (!onDemand && !timestamps && !deviceMemory) {
            return;
        }
        String device = context.device().name();
        ExtendedDeviceAttributes attributes = context.queryDeviceExtended();
        if (onDemand) {
            requirePaging(attributes, device, type, receive);
        }
        if (timestamps && attributes.completionTimestampMask() == 0) {
            throw new CommandFailure("-t (--ts) needs completion timestamps, which " + device + " does not have");
        }
        if (deviceMemory && attributes.maxDeviceMemoryBytes() == 0) {
            throw new CommandFailure("-j (--dm) needs device memory, which " + device + " does not have");
        }
        if (deviceMemory && Long.compareUnsigned(attributes.maxDeviceMemoryBytes(), sizeBytes) < 0) {
            throw new CommandFailure("-j (--dm) needs " + sizeBytes + " bytes of device memory, and " + device + " has "
                    + attributes.maxDeviceMemoryBytes() + ": give a smaller size (-s)");
        }
    }

    private void requirePaging(
            ExtendedDeviceAttributes attributes, String device, QueuePairType type, OnDemandOperation receive) {
        String option = implicit ? "-O (--iodp)" : "-o (--odp)";
        if (!attributes.hasOnDemandPaging()) {
            throw new CommandFailure(option + " needs on-demand paging, which " + device + " does not have");
        }
        Set<OnDemandOperation> needed = EnumSet.of(OnDemandOperation.SEND, receive);
        Set<OnDemandOperation> there = attributes.onDemandOperations(type);
        if (!there.containsAll(needed)) {
            throw new CommandFailure(option + " needs on-demand paging of "
                    + type.name().replaceFirst("_.*", "") + "'s " + needed + ", and " + device + " supports it for "
                    + (there.isEmpty() ? "none of its operations" : there));
        }
        if (implicit && !attributes.hasImplicitOnDemandPaging()) {
            throw new CommandFailure(
                    "-O (--iodp) needs implicit on-demand paging, which " + device + " does not have: use -o (--odp)");
        }
    }
}
