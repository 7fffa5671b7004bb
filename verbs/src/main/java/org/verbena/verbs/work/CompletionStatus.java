package org.verbena.verbs.work;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The status of a completed work request. The first completion that is neither {@link #SUCCESS} nor {@link
 * #WR_FLUSH_ERR} has the cause; the flushes after it follow from it.
 *
 * <p>Source: ibv_poll_cq(3), ibv_wc_status_str(3)
 */
public enum CompletionStatus implements NativeConstant {
    /** Done. */
    SUCCESS(0, "done", "nothing to do"),
    /** A local length error. */
    LOC_LEN_ERR(
            1,
            "a receive was too small for its message, or a request is longer than the device or the path MTU of a datagram allows",
            "post receives as large as the largest message, and split what is larger than PortAttributes.maxMessageBytes"),
    /** A local queue pair consistency error. */
    LOC_QP_OP_ERR(
            2,
            "the queue pair is inconsistent with the request",
            "check that its type knows the operation, and that the state and attributes it was given fit; soft RoCE also reports receives that"
                    + " are too small, and local keys that are gone, this way"),
    /** A local end-to-end context error: reliable datagrams only, which no device has. */
    LOC_EEC_OP_ERR(
            3, "a reliable-datagram context error", "reliable datagrams are not in use anywhere: report the driver"),
    /** A local protection error. */
    LOC_PROT_ERR(
            4,
            "a local key is invalid, of another protection domain, or lacks a right the request needs",
            "register the memory in the queue pair's protection domain, with LOCAL_WRITE for receives, reads and atomics"
                    + " (iWARP reads need REMOTE_WRITE too), and keep it registered until the completion"),
    /** Flushed. */
    WR_FLUSH_ERR(
            5,
            "not done: the queue pair was in the error state",
            "check the first completion that is not a flush, or the disconnect event: it has the cause"),
    /** A memory window could not be bound. */
    MW_BIND_ERR(
            6,
            "the memory window could not be bound",
            "register the region with MW_BIND, and give the window no more rights than the region has"),
    /** An unexpected response. */
    BAD_RESP_ERR(
            7,
            "the peer's adapter answered with an unexpected packet",
            "check that both sides gave their queue pairs the same attributes; otherwise report the driver"),
    /** A local access error during a write with immediate data. */
    LOC_ACCESS_ERR(
            8,
            "a protection error on local memory while receiving a write with immediate data",
            "post receives whose memory is registered with LOCAL_WRITE"),
    /** The peer found the request invalid. */
    REM_INV_REQ_ERR(
            9,
            "the peer's adapter found the request invalid",
            "it was longer than the peer's receive, or asks for reads or atomics that the peer's queue pair does not allow"
                    + " (qp_access_flags, max_dest_rd_atomic)"),
    /** The peer refused access to its memory. */
    REM_ACCESS_ERR(
            10,
            "the peer refused access to its memory",
            "check key, address and length: the key is wrong or invalidated, the range leaves the region, or the region or queue"
                    + " pair lacks REMOTE_READ, REMOTE_WRITE or REMOTE_ATOMIC"),
    /** The peer's adapter could not do it. */
    REM_OP_ERR(
            11,
            "the peer's adapter could not complete the request",
            "the peer's side has the reason: see its completions and asynchronous events"),
    /** No answer after all retries. */
    RETRY_EXC_ERR(
            12,
            "no acknowledgement came after all retries",
            "the peer or the path is gone, or the queue pairs disagree (number, PSN, GID, MTU); with retry_cnt 0 one lost packet"
                    + " is enough: use 7, and a timeout of 14 or more"),
    /** The peer was never ready to receive. */
    RNR_RETRY_EXC_ERR(
            13,
            "the peer had no receive posted, in all retries",
            "the peer must post receives before the sender sends: flow control is missing or late; rnr_retry 7 retries forever"),
    /** A reliable-datagram domain violation. */
    LOC_RDD_VIOL_ERR(
            14,
            "a reliable-datagram domain violation",
            "reliable datagrams are not in use anywhere: report the driver"),
    /** The peer refused a read of a reliable datagram. */
    REM_INV_RD_REQ_ERR(
            15,
            "an invalid reliable-datagram request",
            "reliable datagrams are not in use anywhere: report the driver"),
    /** The peer aborted. */
    REM_ABORT_ERR(
            16,
            "the operation was aborted by the peer",
            "the peer's queue pair was suspended or in error: see its side"),
    /** An invalid end-to-end context number. */
    INV_EECN_ERR(17, "an invalid end-to-end context", "reliable datagrams are not in use anywhere: report the driver"),
    /** An invalid end-to-end context state. */
    INV_EEC_STATE_ERR(
            18,
            "an end-to-end context in the wrong state",
            "reliable datagrams are not in use anywhere: report the driver"),
    /** A fatal error. */
    FATAL_ERR(
            19,
            "the device reported a fatal error",
            "see the vendor error and the kernel log; the device may need a reset"),
    /** A response timed out. */
    RESP_TIMEOUT_ERR(20, "a response timed out", "the peer or the path is gone, or the timeout is too short"),
    /** Another error. */
    GENERAL_ERR(21, "the device reported an error that has no other name", "see the vendor error and the kernel log"),
    /** A tag-matching error. */
    TM_ERR(22, "a tag-matching operation failed", "check that the tag is in the list and that the list has room"),
    /** A tag-matching rendezvous that is left to software. */
    TM_RNDV_INCOMPLETE(
            23,
            "a rendezvous could not be done by the adapter",
            "complete it in software: read the data named by its header"),
    /** A status this version does not know. */
    UNKNOWN(-1, "a status that this version does not know", "see ibv_poll_cq(3) of the installed rdma-core");

    private static final CompletionStatus[] BY_VALUE = byValue();

    private final int value;
    private final String meaning;
    private final String hint;

    CompletionStatus(int value, String meaning, String hint) {
        this.value = value;
        this.meaning = meaning;
        this.hint = hint;
    }

    private static CompletionStatus[] byValue() {
        CompletionStatus[] known = new CompletionStatus[values().length - 1];
        for (CompletionStatus status : values()) {
            if (status != UNKNOWN) {
                known[status.value] = status;
            }
        }
        return known;
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static CompletionStatus of(int value) {
        return value >= 0 && value < BY_VALUE.length ? BY_VALUE[value] : UNKNOWN;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_WC_" + name();
    }

    /**
     * What it means.
     *
     * @return half a sentence
     */
    public String meaning() {
        return meaning;
    }

    /**
     * What usually causes it, and what to do.
     *
     * @return half a sentence
     */
    public String hint() {
        return hint;
    }
}
