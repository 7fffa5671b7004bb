package org.verbena.transport.spi;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.HashSet;
import java.util.Set;

/** Counts what a provider's completion loops do, for {@link ProviderCounters}; one for each provider. Any thread, but for what a {@link Loop} says. */
public final class PollCounters {
    private final Set<Loop> loops = new HashSet<>(); // guarded by this, and so is what follows
    private long endedPolls;
    private long endedEmptyPolls;
    private long endedCompletions;
    private long endedLargestPoll;

    /** Makes one, all 0. */
    public PollCounters() {}

    /**
     * For a loop that begins.
     *
     * @return the counters of this loop alone; it closes them when it ends
     */
    public synchronized Loop newLoop() {
        Loop loop = new Loop();
        loops.add(loop);
        return loop;
    }

    /**
     * What all loops have done, those that have ended included.
     *
     * @param registeredBytes of the provider's domains
     * @return a snapshot; each number is from a moment ago at the latest
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

    /** One loop's counters: its thread writes, any reads. */
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
         * The loop has polled. Its thread.
         *
         * @param found completions that it found, 0 or more
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

        /** The loop has ended; what it did still counts. Idempotent. */
        @Override
        public void close() {
            ended(this);
        }
    }
}
