package org.verbena.bench.peers.contenders;

import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.verbena.bench.peers.Load;

/**
 * Requests of a framework that works in its own threads: each reply starts the next request. The first requests come
 * from another thread, hence the locks.
 */
final class Calls {
    /** How a framework makes a request. */
    interface Call {
        /**
         * Sends the load's payload with this sequence number, gives the reply to {@link Calls#replied}, and calls
         * {@link Calls#next} when the request is over, or {@link Calls#failed}.
         */
        void start(Calls calls, long sequence);
    }

    private final Load load;
    private final Call call;
    private final CompletableFuture<Void> done = new CompletableFuture<>();

    /** Who starts requests. One that is over before its start returns leaves the next to it, or it would recurse. */
    private volatile @Nullable Thread starter;

    /**
     * For one load.
     *
     * @param load what is asked
     * @param call how it is sent
     */
    Calls(Load load, Call call) {
        this.load = load;
        this.call = call;
    }

    /** Runs the load. */
    void run() throws Exception {
        next();
        done.get();
    }

    /** What a request carries behind its sequence number: its first 8 bytes are not to be sent. */
    byte[] payload() {
        return load.payload;
    }

    /** Starts the requests that may be started now, or is done. */
    void next() {
        Thread here = Thread.currentThread();
        if (here.equals(starter)) {
            return;
        }
        starter = here;
        while (true) {
            long sequence;
            synchronized (load) {
                sequence = load.next();
            }
            if (sequence < 0) {
                break;
            }
            call.start(this, sequence);
        }
        starter = null;
        if (load.finished()) {
            done.complete(null);
        }
    }

    /** A reply came. */
    void replied(long sequence, int length, byte last) {
        try {
            synchronized (load) {
                load.echoed(sequence, length, last);
            }
        } catch (IllegalStateException e) {
            failed(e);
        }
    }

    /** A request did not get its reply: so the load cannot be finished. */
    void failed(Throwable cause) {
        done.completeExceptionally(cause);
    }
}
