package org.verbena.cm;

import java.io.Serial;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ffm.Errno;

/**
 * A call of librdmacm failed, or an event reported a failure. The message has the call with its arguments, or the event
 * with its status, and what to do.
 */
public final class CmException extends NativeRdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /** The function, or the step that the event ended. */
    private final String call;

    /** 0 if an event reported the failure. */
    private final int errno;

    /** The event that reported the failure; null if the call itself failed. */
    private final @Nullable CmEventType eventType;

    /** The event's status; 0 without an event. */
    private final int status;

    private CmException(String message, String call, int errno, @Nullable CmEventType eventType, int status) {
        super(message);
        this.call = call;
        this.errno = errno;
        this.eventType = eventType;
        this.status = status;
    }

    /**
     * For a call that failed.
     *
     * @param call the function and its arguments: {@code rdma_bind_addr(192.0.2.1:7471)}
     * @param errno the call's errno, as errno(3)
     */
    public CmException(String call, int errno) {
        this(message(call, errno), call, errno, null, 0);
    }

    /** The same with a remark, which may be empty. */
    CmException(String call, int errno, String remark) {
        this(
                message(call, errno)
                        + (remark.isEmpty() ? "" : (CmStatus.hint(call, errno).isEmpty() ? ": " : "; ") + remark),
                call,
                errno,
                null,
                0);
    }

    /**
     * For an event that reported a failure.
     *
     * @param call what was going on: {@code connecting to 192.0.2.1:7471}
     * @param eventType the event's type
     * @param status its status
     */
    public CmException(String call, CmEventType eventType, int status) {
        this(call + " failed: " + eventType + ", " + CmStatus.describe(eventType, status), call, 0, eventType, status);
    }

    /** rdma_getaddrinfo passes on getaddrinfo's result, which is not an errno. */
    static CmException ofAddressInfo(String call, int answer, int errno) {
        String meaning = switch (answer) {
            case -1 -> "";
            case -2 -> "EAI_NONAME: no such host or service; check the name, or give an address";
            case -3 -> "EAI_AGAIN: the name service did not answer; try again";
            case -4 -> "EAI_FAIL: the name service failed";
            case -6 -> "EAI_FAMILY: no address of that family";
            case -8 -> "EAI_SERVICE: no such service; give a port number";
            case -10 -> "EAI_MEMORY: out of memory";
            default -> "getaddrinfo answered " + answer;
        };
        return meaning.isEmpty()
                ? new CmException(call, errno)
                : new CmException(call + " failed with " + meaning, call, 0, null, 0);
    }

    private static String message(String call, int errno) {
        String hint = CmStatus.hint(call, errno);
        return call + " failed with " + Errno.name(errno) + (hint.isEmpty() ? "" : ": " + hint);
    }

    /**
     * What failed.
     *
     * @return a function with its arguments, or the step that the event ended
     */
    public String call() {
        return call;
    }

    /**
     * The call's errno.
     *
     * @return a positive errno; 0 if an event reported the failure
     */
    @Override
    public int errno() {
        return errno;
    }

    /**
     * The event that reported the failure.
     *
     * @return null if it was the call itself
     */
    public @Nullable CmEventType eventType() {
        return eventType;
    }

    /**
     * The event's status.
     *
     * @return a negative errno, a {@link RejectReason#value()}, or 0
     */
    public int status() {
        return status;
    }
}
