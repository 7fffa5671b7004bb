package org.verbena.transport;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Exchanges the addresses of the two queue pairs of a connection: over TCP, by a file, by whatever connects the two
 * programs already. Each connection needs its own exchange.
 *
 * <pre>{@code
 *   this end                                   the peer
 *   creates its queue pair, posts receives     likewise
 *   exchange(own) -------------------------->
 *                 <-------------------------- its end
 *   connects its queue pair                    likewise
 *   ready() ------------------------------->
 *           <-------------------------------   it is connected, too
 *   connected: may send
 * }</pre>
 *
 * <p>All methods are called on the channel's event loop and must not block; their stages may complete on any thread.
 * {@link #exchange} is called once, {@link #ready} at most once after it. If the attempt ends before that (a failure,
 * the connect timeout, a channel that is closed) {@link #giveUp} is called once, whatever was called before. A stage
 * that fails, or a method that throws, ends the attempt with a {@link ConnectionException}.
 *
 * <p>Anyone who can read the exchange learns the queue pair's address and can send to it in the peer's name: make sure
 * that only the peer can read it.
 */
public interface QueuePairExchange {

    /**
     * Exchanges the ends.
     *
     * @param own this end
     * @param memory the device's domain, for exchanges that also give the peer access to memory: register it here. The
     *     exchange closes what it registers
     * @return the peer's end. Its packet sequence number is used even if the peer sent another one
     */
    CompletionStage<QueuePairEnd> exchange(QueuePairEnd own, MemoryDomain memory);

    /**
     * Adapts this end to a format that fixes some of its values. Called before {@link #exchange}, which gets the
     * result.
     *
     * @param proposed this end as the provider proposes it
     * @return the same, perhaps with another packet sequence number or smaller packets
     */
    default QueuePairEnd adapt(QueuePairEnd proposed) {
        return proposed;
    }

    /**
     * Called when this end's queue pair is connected: it can receive and send. Waits until the peer's is connected as
     * well, so that nothing is sent to a queue pair that cannot receive yet.
     *
     * @return completes when it is; already complete unless overridden, for exchanges and programs that know it
     *     otherwise. A queue pair repeats a packet for some seconds if nothing answers
     */
    default CompletionStage<Void> ready() {
        return CompletableFuture.completedFuture(null);
    }

    /**
     * Called when the attempt has failed: stops what is under way and releases what the exchange holds. Must not throw.
     */
    default void giveUp() {}

    /**
     * The role of this end in the message protocol, where one end begins and the other answers, as a client and its
     * server do. Framing RAW has no roles.
     *
     * @return true if the peer begins; exactly one of the two ends must return true
     */
    default boolean answers() {
        return false;
    }
}
