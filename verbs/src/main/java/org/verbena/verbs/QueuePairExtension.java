package org.verbena.verbs;

import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.queue.QueuePairCreateFlag;
import org.verbena.verbs.work.SendOperation;

/**
 * Options of a new queue pair beyond {@link QueuePairOptions}.
 *
 * <p>Source: ibv_create_qp_ex(3)
 *
 * @param sendOperations what its {@link QueuePair#builder()} builds; empty without a builder
 * @param createFlags how it differs from an ordinary queue pair; empty for one
 * @param xrcDomain of an XRC_RECV queue pair; null otherwise
 * @param maxTsoHeaderBytes the longest header of a segmented send, 0 without
 * @param sourceNumber what datagrams carry as their source, with SOURCE_QPN
 * @param receiveHash how it spreads what it receives, instead of having receives of its own; null without
 */
public record QueuePairExtension(
        Set<SendOperation> sendOperations,
        Set<QueuePairCreateFlag> createFlags,
        @Nullable XrcDomain xrcDomain,
        int maxTsoHeaderBytes,
        int sourceNumber,
        @Nullable ReceiveSpreading receiveHash) {

    /** Copies the sets and checks ranges. */
    public QueuePairExtension {
        sendOperations = Set.copyOf(sendOperations);
        createFlags = Set.copyOf(createFlags);
        Ranges.check("maxTsoHeaderBytes", maxTsoHeaderBytes, 0, 0xffff);
        Ranges.check("sourceNumber", sourceNumber, 0, 0xffffff);
    }

    /**
     * Without a receive hash.
     *
     * @param sendOperations what its builder builds
     * @param createFlags how it differs from an ordinary queue pair; empty for one
     * @param xrcDomain of an XRC_RECV queue pair
     * @param maxTsoHeaderBytes the longest header of a segmented send
     * @param sourceNumber what datagrams carry as their source
     */
    public QueuePairExtension(
            Set<SendOperation> sendOperations,
            Set<QueuePairCreateFlag> createFlags,
            @Nullable XrcDomain xrcDomain,
            int maxTsoHeaderBytes,
            int sourceNumber) {
        this(sendOperations, createFlags, xrcDomain, maxTsoHeaderBytes, sourceNumber, null);
    }

    /**
     * For a queue pair that spreads its receives over a table. Its {@link QueuePairOptions} have no receives and, on
     * most devices, no sends.
     *
     * @param hash how it does so
     * @return the extension
     */
    public static QueuePairExtension spreading(ReceiveSpreading hash) {
        return new QueuePairExtension(Set.of(), Set.of(), null, 0, 0, hash);
    }

    /**
     * For a queue pair with a builder.
     *
     * @param operations what it builds
     * @return the extension
     */
    public static QueuePairExtension building(Set<SendOperation> operations) {
        return new QueuePairExtension(operations, Set.of(), null, 0, 0);
    }

    /**
     * For the receiving side of an XRC connection.
     *
     * @param domain the XRC domain
     * @return the extension
     */
    public static QueuePairExtension xrc(XrcDomain domain) {
        return new QueuePairExtension(Set.of(), Set.of(), domain, 0, 0);
    }
}
