package org.verbena.transport.spi;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.stat.LoopRow;
import org.verbena.transport.stat.StatFile;

/**
 * Counts the work of a provider's completion loops, for {@link ProviderCounters}; one for each provider. Any thread,
 * except where {@link Loop} says otherwise.
 */
public final class PollCounters {
    private final String provider;
    private final Set<Loop> loops = new HashSet<>(); // guarded by this, and so is what follows
    private long endedPolls;
    private long endedEmptyPolls;
    private long endedCompletions;
    private long endedLargestPoll;

    /**
     * Creates counters that are all 0.
     *
     * @param provider the provider's name
     */
    public PollCounters(String provider) {
        this.provider = provider;
    }

    /**
     * Adds a loop.
     *
     * @return the counters of this loop only; the loop closes them when it ends
     */
    public synchronized Loop newLoop() {
        StatFile file = StatFile.own();
        Loop loop = new Loop(file == null ? null : file.newLoop());
        loops.add(loop);
        return loop;
    }

    /**
     * The totals of all loops, including those that have ended.
     *
     * @param registeredBytes of the provider's domains
     * @return a snapshot, weakly consistent: values may lag slightly, and not all by the same amount
     */
    public synchronized ProviderCounters snapshot(long registeredBytes) {
        long polls = endedPolls;
        long emptyPolls = endedEmptyPolls;
        long completions = endedCompletions;
        long largestPoll = endedLargestPoll;
        for (Loop loop : loops) {
            emptyPolls += loop.emptyPolls();
            completions += loop.completions();
            polls += loop.polls();
            largestPoll = Math.max(largestPoll, loop.largestPoll());
        }
        return new ProviderCounters(polls, emptyPolls, completions, largestPoll, registeredBytes);
    }

    private synchronized void ended(Loop loop) {
        if (loops.remove(loop)) {
            endedPolls += loop.polls();
            endedEmptyPolls += loop.emptyPolls();
            endedCompletions += loop.completions();
            endedLargestPoll = Math.max(endedLargestPoll, loop.largestPoll());
        }
    }

    /**
     * The counters of one loop: its thread writes them, any thread reads them. They are copied to the process's {@link
     * StatFile} when the loop blocks, and every {@value #POLLS_BETWEEN_COPIES} polls while it does not; the number of
     * polls is copied at once, so that a reader can distinguish a loop that hangs from one that is busy.
     */
    public final class Loop implements AutoCloseable {
        /** Makes the copy, which reads the clock, cheap beside the polls. */
        private static final int POLLS_BETWEEN_COPIES = 64;

        /** How often a loop that only polls reports that it does. */
        private static final long SIGN_NANOS = 100_000_000;

        private static final VarHandle POLLS = handle("polls");
        private static final VarHandle EMPTY_POLLS = handle("emptyPolls");
        private static final VarHandle COMPLETIONS = handle("completions");
        private static final VarHandle LARGEST_POLL = handle("largestPoll");

        private long polls;
        private long emptyPolls;
        private long completions;
        private long largestPoll;

        // The loop's thread only.
        private final @Nullable LoopRow row;
        private boolean begun;
        private boolean waiting;
        private long spinNanos;
        private int pollsSinceCopy;
        private long signNanos;

        private Loop(@Nullable LoopRow row) {
            this.row = row;
        }

        private static VarHandle handle(String field) {
            try {
                return MethodHandles.lookup().findVarHandle(Loop.class, field, long.class);
            } catch (ReflectiveOperationException impossible) {
                throw new ExceptionInInitializerError(impossible);
            }
        }

        /**
         * Counts one poll. The loop's thread only.
         *
         * @param found the number of completions found, 0 or more
         */
        public void polled(int found) {
            POLLS.setOpaque(this, polls + 1);
            if (found == 0) {
                EMPTY_POLLS.setOpaque(this, emptyPolls + 1);
            } else {
                COMPLETIONS.setOpaque(this, completions + found);
                if (found > largestPoll) {
                    LARGEST_POLL.setOpaque(this, (long) found);
                }
            }
            LoopRow copy = row;
            if (copy != null) {
                copy.polled(polls);
                if (++pollsSinceCopy >= POLLS_BETWEEN_COPIES || !begun) {
                    copy(copy, System.nanoTime());
                }
            }
        }

        private void copy(LoopRow to, long nowNanos) {
            if (!begun) {
                begun = true;
                to.began(provider, nowNanos);
            }
            pollsSinceCopy = 0;
            signNanos = nowNanos;
            to.counted(emptyPolls, completions, largestPoll, spinNanos, nowNanos);
        }

        /**
         * The loop keeps polling without finding anything: it is not stuck. The loop's thread only.
         *
         * @param nowNanos {@link System#nanoTime()}
         */
        public void spins(long nowNanos) {
            LoopRow copy = row;
            if (copy != null && nowNanos - signNanos >= SIGN_NANOS) {
                copy(copy, nowNanos);
            }
        }

        /**
         * The loop has polled for so long without finding anything. The loop's thread only.
         *
         * @param nanos from the first poll to the last that found nothing, 0 or more
         */
        public void spun(long nanos) {
            spinNanos += nanos;
        }

        /**
         * The loop is about to block. The loop's thread only.
         *
         * @param nowNanos {@link System#nanoTime()}, or a little earlier
         */
        public void waits(long nowNanos) {
            LoopRow copy = row;
            if (copy != null) {
                copy(copy, nowNanos);
                waiting = true;
                copy.waits();
            }
        }

        /** The loop has woken, if it had blocked. The loop's thread only. */
        public void woke() {
            LoopRow copy = row;
            if (copy != null && waiting) {
                waiting = false;
                copy.runs(System.nanoTime());
            }
        }

        private long polls() {
            return (long) POLLS.getOpaque(this);
        }

        private long emptyPolls() {
            return (long) EMPTY_POLLS.getOpaque(this);
        }

        private long completions() {
            return (long) COMPLETIONS.getOpaque(this);
        }

        private long largestPoll() {
            return (long) LARGEST_POLL.getOpaque(this);
        }

        /** The loop has ended; its totals are kept. Idempotent. */
        @Override
        public void close() {
            ended(this);
            LoopRow copy = row;
            if (copy != null) {
                copy.close();
            }
        }
    }
}
