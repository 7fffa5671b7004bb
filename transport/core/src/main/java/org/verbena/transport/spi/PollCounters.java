package org.verbena.transport.spi;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.HashSet;
import java.util.Set;

/**
 * Counts the work of a provider's completion loops, for {@link ProviderCounters}; one for each provider. Any thread,
 * except where {@link Loop} says otherwise.
 */
public final class PollCounters {
    private final Set<Loop> loops = new HashSet<>(); // guarded by this, and so is what follows
    private long endedPolls;
    private long endedEmptyPolls;
    private long endedCompletions;
    private long endedLargestPoll;

    /** Creates counters that are all 0. */
    public PollCounters() {}

    /**
     * Adds a loop.
     *
     * @return the counters of this loop only; the loop closes them when it ends
     */
    public synchronized Loop newLoop() {
        Loop loop = new Loop();
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

    /** The counters of one loop: its thread writes them, any thread reads them. */
    public final class Loop implements AutoCloseable {
        private static final VarHandle POLLS = handle("polls");
        private static final VarHandle EMPTY_POLLS = handle("emptyPolls");
        private static final VarHandle COMPLETIONS = handle("completions");
        private static final VarHandle LARGEST_POLL = handle("largestPoll");

        private long polls;
        private long emptyPolls;
        private long completions;
        private long largestPoll;

        private Loop() {}

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
        }
    }
}
