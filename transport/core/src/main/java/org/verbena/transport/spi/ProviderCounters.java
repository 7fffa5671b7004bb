package org.verbena.transport.spi;

/**
 * What a provider's completion loops have done so far, and what is registered with it now.
 *
 * @param polls how often a loop asked for completions; on soft, how often it looked at its sockets
 * @param emptyPolls how often there was none
 * @param completions how many there were in all
 * @param largestPoll how many there were at once, at the most
 * @param registeredBytes memory registered now, on all devices
 */
public record ProviderCounters(long polls, long emptyPolls, long completions, long largestPoll, long registeredBytes) {

    /**
     * Completions of a poll that found any.
     *
     * @return their mean; 0 if there were none
     */
    public double completionsPerPoll() {
        long found = polls - emptyPolls;
        return found <= 0 ? 0 : (double) completions / found;
    }
}
