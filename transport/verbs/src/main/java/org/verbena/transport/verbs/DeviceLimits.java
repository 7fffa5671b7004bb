package org.verbena.transport.verbs;

import java.util.EnumMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.queue.QueuePairType;

/**
 * What no query returns: how many bytes a send of a device has inline, and how many elements; what the device reports
 * of these is the lesser one of sends and receives. Each type of queue pair is tried with throw-away ones, once, before
 * the first one is made. Later failures say nothing of limits. Any thread; the device's connection loop, since the
 * firmware answers.
 */
final class DeviceLimits {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceLimits.class);

    /** No adapter is known to have more: hns has so many. */
    private static final int MAX_INLINE_BYTES = 1024;

    private record Limits(int sendSges, int inlineBytes) {}

    private final VerbsDevice device;

    /** Guarded by this. */
    private final Map<QueuePairType, Limits> known = new EnumMap<>(QueuePairType.class);

    DeviceLimits(VerbsDevice device) {
        this.device = device;
    }

    /**
     * Reduces a wish to what the device has.
     *
     * @throws NativeRdmaException the device makes no queue pair of that type now, however small
     */
    synchronized QueuePairOptions shrink(QueuePairOptions wanted) {
        Limits limits = known.get(wanted.type());
        if (limits == null) {
            limits = find(wanted.type());
            known.put(wanted.type(), limits);
        }
        QueuePairCapabilities sizes = wanted.capabilities();
        return wanted.withCapabilities(sizes.withMaxSendSges(Math.min(sizes.maxSendSges(), limits.sendSges))
                .withMaxInlineBytes(Math.min(sizes.maxInlineBytes(), limits.inlineBytes)));
    }

    private Limits find(QueuePairType type) {
        CompletionQueue completions = device.context().createCompletionQueue(1);
        try {
            QueuePairOptions least = QueuePairOptions.reliable(completions, new QueuePairCapabilities(1, 1, 1, 1, 0))
                    .withType(type);
            make(least);
            int sges = EndpointOptions.DEFAULTS.maxSges();
            while (sges > Math.max(1, device.attributes().maxSges()) && !takes(least, sges, 0)) {
                sges--;
            }
            int inline = 0;
            int refused = device.family().hasInline() ? MAX_INLINE_BYTES + 1 : 1;
            for (int next = refused - 1; next > inline; next = (inline + refused) >>> 1) {
                if (takes(least, 1, next)) {
                    inline = next;
                } else {
                    refused = next;
                }
            }
            LOG.debug("{} takes {} bytes inline and {} elements in a send of {}", device.name(), inline, sges, type);
            return new Limits(Math.max(sges, device.attributes().maxSges()), inline);
        } finally {
            DeviceResources.giveBack(completions);
        }
    }

    private boolean takes(QueuePairOptions least, int sges, int inlineBytes) {
        try {
            make(least.withCapabilities(
                    least.capabilities().withMaxSendSges(sges).withMaxInlineBytes(inlineBytes)));
            return true;
        } catch (NativeRdmaException limit) {
            return false;
        }
    }

    private void make(QueuePairOptions options) {
        ProtectionDomain domain = device.memoryDomain().protectionDomain();
        NativeFailures.tryTwice(() -> DeviceResources.giveBack(domain.createQueuePair(options)));
    }
}
