package org.verbena.transport.soft;

/**
 * Watches that what a peer owes comes at a least rate: a byte now and then is no progress. It is asked once a tick of the
 * loop and knows no other time. One thread.
 */
final class LeastRate {
    private int sinceTick;
    private long sinceItem;
    private long sinceBytes;

    /**
     * Looks at the progress.
     *
     * @param tick the loop's time
     * @param ticks how long the peer has for so many bytes
     * @param owed whether it owes anything
     * @param item which one: a number that changes when it is done
     * @param bytes how much has come so far, of all items
     * @param leastBytes how much is enough
     * @return whether for more than so many ticks the same thing was owed and less of it came
     */
    boolean isTooSlow(int tick, int ticks, boolean owed, long item, long bytes, long leastBytes) {
        if (owed && item == sinceItem) {
            if (tick - sinceTick <= ticks) {
                return false;
            }
            if (bytes - sinceBytes < leastBytes) {
                return true;
            }
        }
        sinceTick = tick;
        sinceItem = item;
        sinceBytes = bytes;
        return false;
    }
}
