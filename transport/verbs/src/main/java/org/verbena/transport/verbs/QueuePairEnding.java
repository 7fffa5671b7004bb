package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.queue.QueuePairState;

/** Ends queue pairs: a refusal is logged, and the end continues. Confined to the connection loop's thread. */
final class QueuePairEnding {
    private static final Logger LOG = LoggerFactory.getLogger(QueuePairEnding.class);

    private QueuePairEnding() {}

    /**
     * Moves a queue pair to its error state, so that it returns all work.
     *
     * @param queuePair null if none was made
     * @param owner in messages
     */
    static void toErrorState(@Nullable QueuePair queuePair, Object owner) {
        if (queuePair != null) {
            try {
                queuePair.modify(QueuePairAttributes.to(QueuePairState.ERR).build());
            } catch (NativeRdmaException refused) {
                LOG.debug("{}: {}", owner, refused.getMessage());
            }
        }
    }

    /**
     * Destroys a queue pair.
     *
     * @param queuePair null if none was made
     * @param owner in messages
     * @return whether there is none now
     */
    static boolean close(@Nullable QueuePair queuePair, Object owner) {
        if (queuePair == null) {
            return true;
        }
        try {
            queuePair.close();
            return true;
        } catch (RuntimeException refused) {
            LOG.error(
                    "The queue pair of {} could not be destroyed; the memory of its work requests stays registered",
                    owner,
                    refused);
            return false;
        }
    }
}
