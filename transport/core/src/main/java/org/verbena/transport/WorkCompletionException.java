package org.verbena.transport;

import java.io.Serial;

/** A work request failed. The first failure ends a reliable connection. */
public class WorkCompletionException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /** How the work request ended. */
    private final WorkStatus status;

    /** The device's vendor error, or 0. */
    private final int vendorError;

    /**
     * Creates an exception.
     *
     * @param operation a description of the work request: {@code READ of 64 bytes at 0x7f.. with key 0x12}
     * @param status how it ended
     * @param vendorError the device's vendor error, 0 if none
     */
    public WorkCompletionException(String operation, WorkStatus status, int vendorError) {
        super(operation + " failed with " + status + ": " + status.meaning()
                + (vendorError == 0 ? "" : " (vendor error 0x" + Integer.toHexString(vendorError) + ")"));
        this.status = status;
        this.vendorError = vendorError;
    }

    /**
     * How the work request ended.
     *
     * @return never SUCCESS
     */
    public WorkStatus status() {
        return status;
    }

    /**
     * The device's vendor error.
     *
     * @return 0 if it gave none
     */
    public int vendorError() {
        return vendorError;
    }
}
