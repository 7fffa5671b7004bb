package org.verbena.transport;

/** How a work request ended. The names are those of {@code enum ibv_wc_status}, which every provider maps to. */
public enum WorkStatus {
    /**
     * Done. For a send or write: acknowledged by the peer's adapter (verbs), or handed to TCP (iWARP); it does not mean
     * that the peer's program has seen it.
     */
    SUCCESS("done"),
    /** A local length error: a receive too small for its message, or a request over the device's limit. */
    LOCAL_LENGTH_ERROR("the receive posted is smaller than the message, or the request is over the device's limit"),
    /** An internal inconsistency of this side's queue pair. */
    LOCAL_QUEUE_PAIR_OPERATION_ERROR("this side's queue pair is inconsistent with the request"),
    /** The local key or its rights do not fit the request. */
    LOCAL_PROTECTION_ERROR(
            "a local key is invalid, or lacks the right the request needs (LOCAL_WRITE for receives and reads)"),
    /**
     * Not done: the queue pair was in error or disconnecting. An earlier completion, or the disconnect, has the cause.
     */
    FLUSHED("not done: the connection was ending; the first failure has the cause"),
    /** A memory window could not be bound. */
    MEMORY_WINDOW_BIND_ERROR(
            "the memory window could not be bound: region without MW_BIND, or rights beyond the region's"),
    /** The response was of an unexpected kind. */
    BAD_RESPONSE_ERROR("the peer's adapter answered with something unexpected"),
    /** A local access error. */
    LOCAL_ACCESS_ERROR("a protection error on local memory during a write with immediate data"),
    /**
     * The peer's adapter found the request invalid: too long for the receive, or an operation that it does not take.
     */
    REMOTE_INVALID_REQUEST_ERROR(
            "the peer's adapter found the request invalid: too long for its receive, or not enabled"),
    /** The peer refused access to its memory: wrong key, out of bounds, or a missing right. */
    REMOTE_ACCESS_ERROR("the peer refused access: wrong or invalidated key, outside the region, or a right not given"),
    /** The peer's adapter could not complete it. */
    REMOTE_OPERATION_ERROR("the peer's adapter could not complete the request"),
    /** No answer after all retries: the peer, its host or the path is gone. */
    TRANSPORT_RETRY_EXCEEDED("no answer after all retries: the peer is gone, or the path is broken"),
    /** The peer posted no receive in time. */
    RECEIVER_NOT_READY_RETRY_EXCEEDED("the peer posted no receive in time"),
    /** Another failure of the device; the message has its number. */
    GENERAL_ERROR("the device reported another error");

    private final String meaning;

    WorkStatus(String meaning) {
        this.meaning = meaning;
    }

    /**
     * What it means.
     *
     * @return a phrase for an exception's message
     */
    public String meaning() {
        return meaning;
    }
}
