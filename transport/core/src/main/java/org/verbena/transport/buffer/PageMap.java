package org.verbena.transport.buffer;

/**
 * A bitmap of a chunk's pages: a bit is set while its page is taken. Runs are found by first fit, so low pages fill up
 * and neighbouring free runs merge by themselves.
 */
final class PageMap {
    private final long[] takenBits;
    private final int pages;
    private int freePages;

    PageMap(int pages) {
        this.pages = pages;
        freePages = pages;
        takenBits = new long[(pages + Long.SIZE - 1) / Long.SIZE];
        int excess = takenBits.length * Long.SIZE - pages;
        if (excess > 0) {
            takenBits[takenBits.length - 1] = -1L << (Long.SIZE - excess);
        }
    }

    int pages() {
        return pages;
    }

    int freePages() {
        return freePages;
    }

    /**
     * Takes the first run that is long enough.
     *
     * @param count pages, 1 or more
     * @return its first page, or -1 if there is none
     */
    int take(int count) {
        if (count > freePages) {
            return -1;
        }
        int start = nextFree(0);
        while (start + count <= pages) {
            int end = nextTaken(start, start + count);
            if (end - start >= count) {
                set(start, count, true);
                freePages -= count;
                return start;
            }
            start = nextFree(end);
        }
        return -1;
    }

    /** Returns a run. */
    void give(int first, int count) {
        for (int page = first; page < first + count; page++) {
            if ((takenBits[page >> 6] & (1L << page)) == 0) {
                throw new IllegalStateException("page " + page + " of a chunk was given back twice");
            }
        }
        set(first, count, false);
        freePages += count;
    }

    private void set(int first, int count, boolean taken) {
        for (int page = first; page < first + count; page++) {
            if (taken) {
                takenBits[page >> 6] |= 1L << page;
            } else {
                takenBits[page >> 6] &= ~(1L << page);
            }
        }
    }

    /** The first free page from {@code from} on, or the number of pages. */
    private int nextFree(int from) {
        for (int page = from; page < pages; page = (page | 63) + 1) {
            long free = ~takenBits[page >> 6] >>> page;
            if (free != 0) {
                return page + Long.numberOfTrailingZeros(free);
            }
        }
        return pages;
    }

    /** The first taken page from {@code from} on, or {@code limit} if that comes first. */
    private int nextTaken(int from, int limit) {
        for (int page = from; page < limit; page = (page | 63) + 1) {
            long taken = takenBits[page >> 6] >>> page;
            if (taken != 0) {
                return Math.min(limit, page + Long.numberOfTrailingZeros(taken));
            }
        }
        return limit;
    }
}
