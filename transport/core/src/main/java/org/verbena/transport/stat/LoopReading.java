package org.verbena.transport.stat;

/**
 * An event loop of a process.
 *
 * @param index its row
 * @param threadId its thread's number
 * @param name its thread's name; empty if it has not begun
 * @param provider its provider
 * @param running whether it has something to do; else it waits
 * @param polls how often it polled
 * @param emptyPolls how often it found nothing; this and what follows may lag by 64 polls while it runs
 * @param completions what it found
 * @param largestPoll the most that it found at once
 * @param spinNanos how long it polled without finding anything before it blocked, in nanoseconds
 * @param lastTurnNanos when it last woke, polled or began to wait, {@link System#nanoTime()}
 */
public record LoopReading(
        int index,
        long threadId,
        String name,
        String provider,
        boolean running,
        long polls,
        long emptyPolls,
        long completions,
        long largestPoll,
        long spinNanos,
        long lastTurnNanos) {

    /**
     * Whether it seems to hang: it has something to do, and has not polled for so long. A handler that blocks the loop
     * looks like this, and so does a process that gets no processor.
     *
     * @param earlier another reading of the same loop
     * @param nowNanos when this one was taken
     * @param limitNanos how long is too long
     * @return false if it waits, or has polled since the other reading
     */
    public boolean hangs(LoopReading earlier, long nowNanos, long limitNanos) {
        return running && polls == earlier.polls && nowNanos - lastTurnNanos >= limitNanos;
    }
}
