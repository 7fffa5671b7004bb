package org.verbena.transport.soft;

/**
 * Watches that a peer delivers what it owes at a minimum rate: an occasional byte is not progress. It is called once
 * per tick of the loop and has no other clock. Not thread-safe; confined to the loop's thread.
 */
final class MinimumRate {
    private int sinceTick;

    /** -1 before the first call, so that the first item has its time however old the loop is. */
    private long sinceItem = -1;

    private long sinceBytes;

    /**
     * Checks the progress.
     *
     * @param tick the loop's time
     * @param ticks how long the peer has for so many bytes
     * @param owed whether it owes anything
     * @param item which one: a number that changes when it is done, 0 or more
     * @param bytes how much has arrived so far, of all items
     * @param minBytes how much is enough
     * @return whether the same item was owed for more than so many ticks, and fewer bytes of it arrived
     */
    boolean isTooSlow(int tick, int ticks, boolean owed, long item, long bytes, long minBytes) {
        if (owed && item == sinceItem) {
            if (tick - sinceTick <= ticks) {
                return false;
            }
            if (bytes - sinceBytes < minBytes) {
                return true;
            }
        }
        sinceTick = tick;
        sinceItem = item;
        sinceBytes = bytes;
        return false;
    }
}
