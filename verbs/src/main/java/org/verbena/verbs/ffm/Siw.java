package org.verbena.verbs.ffm;

/**
 * What Linux' soft iWARP does differently from other drivers.
 *
 * <p>It refuses a queue without saying why. A queue's memory is mapped at an offset of the device's context that counts
 * up page by page, and libsiw takes the offset 0x90000, the 145th page, for "no queue": {@code SIW_INVAL_UOBJ_KEY} of
 * rdma/siw-abi.h. It gives the queue up then, and leaves errno as it was. Queues of one page each always meet that
 * offset, a pair of them with the 72nd queue pair; larger ones may step over it.
 *
 * <p>It sends wrong bytes. What is at most {@link #SHORT_BYTES} long and lies on two pages is copied by the length that
 * lies on the second page as if that were on the first ({@code siw_try_1seg} of siw_qp_tx.c), unless the call that
 * posts it sends it too: so reads are answered wrongly, and a write or send that had to wait is sent wrongly unless it
 * is inline.
 */
public final class Siw {
    /** What is longer is sent correctly. */
    public static final int SHORT_BYTES = 32;

    /**
     * Of a completion queue with more pages of 4 KiB than there are before the refused one: 32 bytes each, rounded up
     * to a power of two.
     */
    public static final int ENTRIES_BEYOND_REFUSED_PAGE = 1 << 15;

    private static final int VENDOR_ID = 0x626d74;

    private static final String REMARK =
            "siw takes no queue whose memory begins at the 145th page of its context, and leaves errno as it was: open another Context for"
                    + " more queues (the connection manager has one for all its ids), or make them of another depth";

    private Siw() {}

    /**
     * Whether a device is one of soft iWARP.
     *
     * @param vendorId of the device
     * @return whether it is
     */
    public static boolean is(int vendorId) {
        return vendorId == VENDOR_ID;
    }

    /**
     * What to add to the message of a refused queue.
     *
     * @param isSiw whether the device is one of soft iWARP
     * @param errno what seems to have been answered
     * @return a sentence; empty for other devices, and where the kernel's answer is its own
     */
    public static String remark(boolean isSiw, int errno) {
        return !isSiw || errno == Errno.EOPNOTSUPP || errno == Errno.ENOMEM ? "" : REMARK;
    }
}
