package org.verbena.transport;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Tells the peer of this end's queue pair, and this end of the peer's: by TCP, by a file, by whatever connects the two
 * programs already. Each connection needs one of its own.
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
 * <p>Everybody who can read the exchange can learn where the queue pair is, and send to it as if it were the peer: use
 * it where only the peer can.
 */
public interface QueuePairExchange {

    /**
     * Exchanges the ends.
     *
     * @param own this end
     * @param memory the device's domain, for exchanges that tell the peer of memory as well: register it here. Whatever
     *     is registered is the exchange's to close
     * @return the peer's end. Where it says that the peer begins with another packet than it told, that is what counts
     */
    CompletionStage<QueuePairEnd> exchange(QueuePairEnd own, MemoryDomain memory);

    /**
     * The end that this side really has, for formats that fix some of it: called before {@link #exchange}, which gets
     * the result.
     *
     * @param proposed this end as the provider would have it
     * @return the same, perhaps with another packet sequence number or smaller packets
     */
    default QueuePairEnd adapt(QueuePairEnd proposed) {
        return proposed;
    }

    /**
     * This end's queue pair is connected: it receives, and could send. Waits until the peer's is connected as well, so
     * that nothing is sent to a queue pair that does not listen yet.
     *
     * @return done when it is; at once unless overridden, for exchanges that know it already, or programs that know it
     *     otherwise. A queue pair repeats a packet for some seconds if nothing answers
     */
    default CompletionStage<Void> ready() {
        return CompletableFuture.completedFuture(null);
    }

    /** The attempt is over, and not successful: stops what is under way and releases what it holds. Must not throw. */
    default void giveUp() {}

    /**
     * Which end this is for the message protocol, where one end begins and the other answers, as a client and its
     * server do. Framing RAW has no such ends.
     *
     * @return true if the peer begins; exactly one of both ends has to say that
     */
    default boolean answers() {
        return false;
    }
}
