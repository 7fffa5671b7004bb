package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
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

    /** Two seconds of attempts: a loop that ends waits for five. */
    private static final int ATTEMPTS = 20;

    private static final long RETRY_MILLIS = 100;

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
     * Destroys a queue pair; what the system refuses is tried again for a while.
     *
     * @param queuePair null if none was made
     * @param owner in messages
     * @param loop where it is tried, and this is called
     * @param then is called once, with whether there is none now
     */
    static void close(@Nullable QueuePair queuePair, Object owner, IoEventLoop loop, Consumer<Boolean> then) {
        close(queuePair, owner, loop, then, ATTEMPTS);
    }

    private static void close(
            @Nullable QueuePair queuePair, Object owner, IoEventLoop loop, Consumer<Boolean> then, int attempts) {
        boolean isGone = queuePair == null;
        try {
            if (queuePair != null) {
                queuePair.close();
                isGone = true;
            }
        } catch (RuntimeException refused) {
            if (attempts > 1) {
                LOG.debug("{}: {}", owner, refused.getMessage());
                try {
                    loop.schedule(
                            () -> close(queuePair, owner, loop, then, attempts - 1),
                            RETRY_MILLIS,
                            TimeUnit.MILLISECONDS);
                    return;
                } catch (Throwable notLater) {
                    refused.addSuppressed(notLater);
                }
            }
            LOG.error(
                    "The queue pair of {} could not be destroyed; the memory of its work requests stays registered",
                    owner,
                    refused);
        }
        then.accept(isGone);
    }
}
