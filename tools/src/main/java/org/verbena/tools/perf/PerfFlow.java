package org.verbena.tools.perf;

import io.netty.util.concurrent.Future;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Messages that a server sends of its own accord: a number of them at once, until a client stops it. Used on the
 * channel's event loop. A message that fails, because the connection has ended, is not followed by another.
 */
final class PerfFlow {
    /** The most at once, even if a client asks for more. */
    private static final int MAX_AT_ONCE = 1 << 14;

    private final int atOnce;
    private final Supplier<Future<?>> message;
    private long started;
    private long done;
    private @Nullable LongConsumer whenEnded;

    /**
     * Creates a flow that sends nothing yet.
     *
     * @param bytes of a message, 1 to {@link PerfProtocol#MAX_MEMORY_BYTES}
     * @param window how many at once, 1 or more; fewer if they have more than that many bytes together
     * @param message sends one, and completes when the next one may follow
     * @throws IllegalArgumentException the client asks for something else
     */
    PerfFlow(int bytes, int window, Supplier<Future<?>> message) {
        if (bytes < 1 || bytes > PerfProtocol.MAX_MEMORY_BYTES || window < 1) {
            throw new IllegalArgumentException(
                    "no server sends " + window + " messages of " + bytes + " bytes at once");
        }
        atOnce = Math.min(Math.min(window, MAX_AT_ONCE), PerfProtocol.MAX_MEMORY_BYTES / bytes);
        this.message = message;
    }

    void begin0() {
        for (int i = 0; i < atOnce; i++) {
            start0();
        }
    }

    /** Starts no more, and reports how many were sent once the last of them is complete. */
    void end0(LongConsumer then) {
        whenEnded = then;
        endIfDone0(then);
    }

    private void start0() {
        started++;
        message.get().addListener(sent -> {
            done++;
            LongConsumer then = whenEnded;
            if (then != null) {
                endIfDone0(then);
            } else if (sent.isSuccess()) {
                start0();
            }
        });
    }

    private void endIfDone0(LongConsumer then) {
        if (done == started) {
            then.accept(started);
        }
    }
}
