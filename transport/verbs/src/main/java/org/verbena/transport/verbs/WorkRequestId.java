package org.verbena.transport.verbs;

/**
 * Identifies the owner of a completion in the 64 bits of a work request's id. It is never a pointer, so that a late or
 * duplicate completion finds that its endpoint is gone, and is dropped.
 *
 * <pre>
 *   63           40 39          24 23  22 21           0
 *  +---------------+--------------+------+--------------+
 *  | endpoint      | generation   | kind | slot         |
 *  +---------------+--------------+------+--------------+
 * </pre>
 *
 * The endpoint is its index in its loop's table; the generation counts how often that index was given out, modulo 2^16;
 * the kind says which queue; the slot is the place in that queue.
 */
final class WorkRequestId {
    /** A slot of the endpoint's send queue. */
    static final int SEND = 0;

    /** A slot of the endpoint's receive queue. */
    static final int RECEIVE = 1;

    /**
     * A slot of the loop's shared receive queue; the endpoint has no meaning, and the generation distinguishes such
     * queues.
     */
    static final int SHARED_RECEIVE = 2;

    /** The first part of a read that is posted in two; the slot is that of the send queue. */
    static final int FIRST_PART = 3;

    /** Endpoints of one loop and device. */
    static final int MAX_ENDPOINTS = 1 << 24;

    /** Slots of one queue. */
    static final int MAX_SLOTS = 1 << 22;

    /** In the place of a slot of the send queue, which has fewer: the binding of a memory window. */
    static final int BINDING = MAX_SLOTS - 1;

    /** In the same place: a write of no bytes, whose completion is that of all before it. */
    static final int ASKING = MAX_SLOTS - 2;

    /** Such a one at the end of the connection. */
    static final int LAST_ASKING = MAX_SLOTS - 3;

    private static final int KIND_SHIFT = 22;
    private static final int GENERATION_SHIFT = 24;
    private static final int ENDPOINT_SHIFT = 40;

    private WorkRequestId() {}

    static long of(int endpoint, int generation, int kind, int slot) {
        return (long) endpoint << ENDPOINT_SHIFT
                | (long) (generation & 0xffff) << GENERATION_SHIFT
                | (long) kind << KIND_SHIFT
                | slot;
    }

    static int endpoint(long id) {
        return (int) (id >>> ENDPOINT_SHIFT);
    }

    static int generation(long id) {
        return (int) (id >>> GENERATION_SHIFT) & 0xffff;
    }

    static int kind(long id) {
        return (int) (id >>> KIND_SHIFT) & 3;
    }

    static int slot(long id) {
        return (int) id & MAX_SLOTS - 1;
    }
}
