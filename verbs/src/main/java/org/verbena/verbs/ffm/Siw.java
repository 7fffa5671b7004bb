package org.verbena.verbs.ffm;

/**
 * What soft iWARP refuses without saying why. A queue's memory is mapped at an offset of the device's context that counts up page by page, and
 * libsiw takes the offset 0x90000, the 145th page, for "no queue": {@code SIW_INVAL_UOBJ_KEY} of rdma/siw-abi.h. It gives the queue up then, and
 * leaves errno as it was. Queues of one page each always meet that offset, a pair of them with the 72nd queue pair; larger ones may step over it.
 */
public final class Siw {
    private static final int VENDOR_ID = 0x626d74;

    private static final String REMARK =
            "siw takes no queue whose memory begins at the 145th page of its context, and leaves errno as it was: open another Context for"
                    + " more queues (the connection manager has one for all its ids), or make them of another depth";

    private Siw() {}

    /**
     * What to add to the message of a refused queue.
     *
     * @param vendorId of the device
     * @param errno what seems to have been answered
     * @return a sentence; empty for other devices, and where the kernel's answer is its own
     */
    public static String remark(int vendorId, int errno) {
        return vendorId != VENDOR_ID || errno == Errno.EOPNOTSUPP || errno == Errno.ENOMEM ? "" : REMARK;
    }
}
