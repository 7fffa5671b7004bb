package org.verbena.verbs.work;

import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Keeps what belongs to each outstanding work request, by the id that its completion returns. C programs keep a pointer
 * in {@code wr_id} for that, and do not notice one that is stale or of another kind. An id that this table did not give
 * out, or whose work has ended, is noticed: {@link #take} returns null, and the completion can be dropped.
 *
 * <pre>{@code
 * OutstandingWork<Request> outstanding = new OutstandingWork<>(depth);
 * long id = outstanding.put(request);
 * queuePair.sendQueue().send(id, SendFlags.SIGNALED).sge(region, 0, length).flush();
 * ...
 * Request request = outstanding.take(completions.workRequestId(i));
 * if (request != null) {
 *     request.complete(completions.status(i));
 * }
 * }</pre>
 *
 * <p>A table may serve several queues, a shared receive queue among them. Give each kind of work a table of its own: an
 * id of one is unknown to the other.
 *
 * <pre>
 *   63          40 39          24 23           0
 *  +--------------+--------------+--------------+
 *  | generation   | table        | slot         |
 *  +--------------+--------------+--------------+
 * </pre>
 *
 * The generation counts how often the slot was used, modulo 2^24, from a random number on; the table is a random
 * number. So an id is stale for the next 16 million uses of its slot. {@code put} and {@code take} allocate nothing.
 * One thread at a time.
 *
 * @param <T> what belongs to a work request
 */
public final class OutstandingWork<T> {
    /** The largest capacity. */
    public static final int MAX_CAPACITY = 1 << 24;

    private static final int TABLE_SHIFT = 24;
    private static final int GENERATION_SHIFT = 40;
    private static final int GENERATION_MASK = (1 << 24) - 1;
    private static final int NONE = -1;

    private final int table;
    private final @Nullable Object[] work;
    private final int[] generations;

    /** By slot: the next free one. */
    private final int[] nextFree;

    private int firstFree;
    private int size;

    /**
     * Makes an empty table.
     *
     * @param capacity how many work requests may be outstanding, 1 to {@link #MAX_CAPACITY}
     * @throws IllegalArgumentException the capacity is out of range
     */
    public OutstandingWork(int capacity) {
        if (capacity < 1 || capacity > MAX_CAPACITY) {
            throw new IllegalArgumentException("capacity " + capacity + " is not 1 to " + MAX_CAPACITY);
        }
        ThreadLocalRandom random = ThreadLocalRandom.current();
        table = random.nextInt(1 << 16);
        work = new Object[capacity];
        generations = new int[capacity];
        Arrays.setAll(generations, slot -> random.nextInt(GENERATION_MASK + 1));
        nextFree = new int[capacity];
        Arrays.setAll(nextFree, slot -> slot + 1 < capacity ? slot + 1 : NONE);
    }

    /**
     * Notes a work request that is about to be posted.
     *
     * @param owner what belongs to it
     * @return the id to post it with; never the same as another that is outstanding
     * @throws IllegalStateException as many are outstanding as fit
     */
    public long put(T owner) {
        if (owner == null) {
            throw new NullPointerException("owner");
        }
        int slot = firstFree;
        if (slot == NONE) {
            throw new IllegalStateException(size + " work requests are outstanding, which is all that fit");
        }
        firstFree = nextFree[slot];
        work[slot] = owner;
        size++;
        return id(slot);
    }

    private long id(int slot) {
        return (long) generations[slot] << GENERATION_SHIFT | (long) table << TABLE_SHIFT | slot;
    }

    /**
     * Ends a work request: it has completed, was not accepted, or is not awaited any more. Its id is unknown from now
     * on.
     *
     * @param id of its completion
     * @return what belonged to it; null for an id that is not outstanding here
     */
    @SuppressWarnings("unchecked") // put() takes nothing else
    public @Nullable T take(long id) {
        int slot = (int) id & MAX_CAPACITY - 1;
        if (slot >= work.length || work[slot] == null || id != id(slot)) {
            return null;
        }
        T owner = (T) work[slot];
        work[slot] = null;
        generations[slot] = generations[slot] + 1 & GENERATION_MASK;
        nextFree[slot] = firstFree;
        firstFree = slot;
        size--;
        return owner;
    }

    /**
     * How many are outstanding.
     *
     * @return 0 to the capacity
     */
    public int size() {
        return size;
    }

    /**
     * Ends all: a queue pair was destroyed, after which nothing completes any more. Completions that still come are
     * unknown.
     *
     * @param each gets what belonged to one work request; it may put others
     */
    public void takeAll(Consumer<? super T> each) {
        // Not those that the consumer puts.
        long[] ids = new long[size];
        int count = 0;
        for (int slot = 0; slot < work.length; slot++) {
            if (work[slot] != null) {
                ids[count++] = id(slot);
            }
        }
        for (long id : ids) {
            T owner = take(id);
            if (owner != null) {
                each.accept(owner);
            }
        }
    }
}
