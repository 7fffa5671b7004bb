package org.verbena.api;

import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import org.verbena.transport.spi.Patience;

/** The requests of many clients, and how long they take in each phase of a test. */
final class RequestLoad {
    /** Requests that each client has under way, one behind the other in each of so many chains. */
    private static final int CHAINS = 2;

    private static final int BYTES = 64;

    /** What the servers do meanwhile. */
    enum Phase {
        /** Nothing is measured: at the beginning, and while what was late catches up. */
        UNMEASURED,
        /** They leave and return for the first time, by code that is not compiled yet. */
        FIRST,
        QUIET,
        LEAVING,
        RETURNING
    }

    private final List<Chain> chains = new ArrayList<>();
    private final LongAdder answered = new LongAdder();

    /** Written by the test, read by all chains. */
    private volatile Phase phase = Phase.UNMEASURED;

    /** The time between two requests of a chain; 0 for none. Written by the test, read by all chains. */
    private volatile long everyNanos;

    private volatile boolean over;

    /** Begins: each chain sends its next request when the one before is answered. */
    RequestLoad(List<RdmaClient> clients) {
        for (RdmaClient client : clients) {
            for (int i = 0; i < CHAINS; i++) {
                chains.add(new Chain(client, chains.size()));
            }
        }
        chains.forEach(chain -> Thread.ofVirtual().name("load").start(chain));
    }

    /** Waits until so many more are answered. */
    void awaitAnswers(String what, long more) {
        long before = answered.sum();
        Patience.until(what, () -> answered.sum() > before + more || hasFailed());
    }

    /** Ends the wait for what does not come any more; {@link #end} fails with the reason. */
    private boolean hasFailed() {
        return chains.stream().anyMatch(chain -> chain.ended.isCompletedExceptionally());
    }

    /** How many were answered. */
    long answered() {
        return answered.sum();
    }

    /**
     * Measures how many requests a second are answered when each chain sends one after the other, and goes on with half
     * as many.
     *
     * @return how many it goes on with
     */
    long halve(int seconds) {
        Patience.sleep(SECONDS.toMillis(seconds)); // until what runs is compiled
        long before = answered.sum();
        long beganNanos = System.nanoTime();
        Patience.sleep(SECONDS.toMillis(seconds));
        double rate = (answered.sum() - before) * 1e9 / (System.nanoTime() - beganNanos);
        everyNanos = Math.max(1, (long) (chains.size() * 1e9 * 2 / rate));
        return (long) (rate / 2);
    }

    void enter(Phase next) {
        phase = next;
    }

    /** Ends it when each chain has its last answer; fails if a request has failed. */
    void end() {
        over = true;
        chains.forEach(each -> Patience.await("the last request", each.ended));
    }

    /** What a request took in each phase that was measured. Once it has ended. */
    String describe() {
        List<String> phases = new ArrayList<>();
        for (Phase each : Phase.values()) {
            long[] took = chains.stream()
                    .flatMapToLong(chain -> chain.took.get(each).sorted())
                    .sorted()
                    .toArray();
            if (each != Phase.UNMEASURED && took.length > 0) {
                phases.add(String.format(
                        Locale.ROOT,
                        "%s p50 %.2f, p99 %.2f, most %.2f of %,d",
                        each.name().toLowerCase(Locale.ROOT),
                        at(took, 0.5),
                        at(took, 0.99),
                        at(took, 1),
                        took.length));
            }
        }
        return String.join("; ", phases);
    }

    private static double at(long[] sorted, double quantile) {
        return sorted[(int) Math.ceil(quantile * sorted.length) - 1] / 1e6;
    }

    /** Values in the order of their arrival. One thread. */
    private static final class Values {
        private long[] values = new long[16];
        private int count;

        void add(long value) {
            if (count == values.length) {
                values = Arrays.copyOf(values, 2 * count);
            }
            values[count++] = value;
        }

        LongStream sorted() {
            return Arrays.stream(values, 0, count).sorted();
        }
    }

    private final class Chain implements Runnable {
        private final RdmaClient client;
        private final int number;

        /** Fails with the first request that does. */
        final CompletableFuture<Void> ended = new CompletableFuture<>();

        /** Written by its thread until it has ended. */
        final Map<Phase, Values> took = new EnumMap<>(Phase.class);

        Chain(RdmaClient client, int number) {
            this.client = client;
            this.number = number;
            for (Phase each : Phase.values()) {
                took.put(each, new Values());
            }
        }

        @Override
        public void run() {
            try {
                sendAll();
                ended.complete(null);
            } catch (Throwable failure) {
                ended.completeExceptionally(failure);
            }
        }

        private void sendAll() {
            long dueNanos = 0;
            long paceNanos = 0;
            while (!over) {
                long every = everyNanos;
                if (every != paceNanos) { // from now on; the chains one after the other
                    paceNanos = every;
                    dueNanos = System.nanoTime() + every / chains.size() * number;
                }
                long beganNanos = begin(every == 0 ? System.nanoTime() : dueNanos);
                Phase before = phase;
                client.request(new byte[BYTES]).join();
                long tookNanos = System.nanoTime() - beganNanos;
                took.get(before == Phase.QUIET ? phase : before).add(tookNanos);
                answered.increment();
                dueNanos += every;
            }
        }

        /** Waits for a request's turn. Returns since when it takes time: if the one before was late, it was due. */
        private long begin(long dueNanos) {
            if (dueNanos <= System.nanoTime()) {
                return dueNanos;
            }
            for (long left = dueNanos - System.nanoTime(); left > 0 && !over; left = dueNanos - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            return System.nanoTime();
        }
    }
}
