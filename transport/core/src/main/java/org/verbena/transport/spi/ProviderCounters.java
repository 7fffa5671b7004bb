package org.verbena.transport.spi;

/**
 * The totals of a provider's completion loops, and the memory currently registered with it.
 *
 * @param polls how often a loop polled for completions; on soft, how often it checked its sockets
 * @param emptyPolls polls that found none
 * @param completions the total number of completions
 * @param largestPoll the most completions found by one poll
 * @param registeredBytes memory registered now, on all devices
 */
public record ProviderCounters(long polls, long emptyPolls, long completions, long largestPoll, long registeredBytes) {

    /**
     * The mean number of completions of polls that found any.
     *
     * @return 0 if there were none
     */
    public double completionsPerPoll() {
        long found = polls - emptyPolls;
        return found <= 0 ? 0 : (double) completions / found;
    }
}
