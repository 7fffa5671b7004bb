package org.verbena.testing;

import org.verbena.transport.WorkStatus;

/**
 * What one end sends to the other at once.
 *
 * @param kind what it is
 * @param request which one of the sender's work requests it belongs to; of an answer, which one of the receiver's
 * @param bytes the payload, which nobody changes any more
 * @param lengthBytes of the payload; of a read, how much is asked for
 * @param key of the memory that it is for, or that it invalidates
 * @param address in that memory
 * @param word immediate data
 * @param flags of {@link org.verbena.transport.spi.EndpointHandler}
 * @param operand of an atomic, and of its answer the old value
 * @param swap of a compare-and-swap
 * @param status of a refusal
 */
record Delivery(
        Kind kind,
        long request,
        byte[] bytes,
        int lengthBytes,
        int key,
        long address,
        int word,
        int flags,
        long operand,
        long swap,
        WorkStatus status) {
    private static final byte[] NOTHING = {};

    /** What a delivery is. */
    enum Kind {
        MESSAGE,
        WRITE,
        READ,
        FETCH_AND_ADD,
        COMPARE_AND_SWAP,
        ANSWER,
        /** The last one: the sender has disconnected in good order. */
        DISCONNECTED,
        /** The last one: the sender has failed. */
        LOST,
        /** The last one: the sender has refused a request of the receiver. */
        REFUSED
    }

    static Delivery message(long request, byte[] bytes, int flags, int word, int key) {
        return new Delivery(Kind.MESSAGE, request, bytes, bytes.length, key, 0, word, flags, 0, 0, WorkStatus.SUCCESS);
    }

    static Delivery write(long request, byte[] bytes, int key, long address, int flags, int word) {
        return new Delivery(
                Kind.WRITE, request, bytes, bytes.length, key, address, word, flags, 0, 0, WorkStatus.SUCCESS);
    }

    static Delivery read(long request, int lengthBytes, int key, long address) {
        return new Delivery(Kind.READ, request, NOTHING, lengthBytes, key, address, 0, 0, 0, 0, WorkStatus.SUCCESS);
    }

    static Delivery atomic(Kind kind, long request, int key, long address, long operand, long swap) {
        return new Delivery(kind, request, NOTHING, Long.BYTES, key, address, 0, 0, operand, swap, WorkStatus.SUCCESS);
    }

    static Delivery answer(long request, byte[] bytes) {
        return new Delivery(Kind.ANSWER, request, bytes, bytes.length, 0, 0, 0, 0, 0, 0, WorkStatus.SUCCESS);
    }

    static Delivery answer(long request, long old) {
        return new Delivery(Kind.ANSWER, request, NOTHING, Long.BYTES, 0, 0, 0, 0, old, 0, WorkStatus.SUCCESS);
    }

    static Delivery end(Kind kind) {
        return new Delivery(kind, 0, NOTHING, 0, 0, 0, 0, 0, 0, 0, WorkStatus.SUCCESS);
    }

    static Delivery refused(long request, WorkStatus status) {
        return new Delivery(Kind.REFUSED, request, NOTHING, 0, 0, 0, 0, 0, 0, 0, status);
    }

    boolean isEnd() {
        return kind.compareTo(Kind.DISCONNECTED) >= 0;
    }
}
