package org.verbena.transport.verbs;

import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.RejectReason;
import org.verbena.transport.ConnectionException;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ffm.Errno;

/** Maps the connection manager's events and errnos to the exceptions of connections that could not be established. */
final class ConnectFailures {
    /** The event status of a step that failed in librdmacm itself: the reason is lost. */
    private static final int OWN_STEP_FAILED = -1;

    private ConnectFailures() {}

    /**
     * A call that failed.
     *
     * @param what was being done: the attempt with its address, and the step
     * @param refused what was thrown
     */
    static ConnectionException of(String what, RuntimeException refused) {
        if (refused instanceof ConnectionException known) {
            return known;
        }
        String message = what + ": " + refused.getMessage();
        if (!(refused instanceof CmException cm)) {
            return new ConnectionException(message, refused);
        }
        return switch (cm.errno()) {
            // siw connects its socket within the call.
            case Errno.ECONNREFUSED -> because(new ConnectionException.Rejected(message, new byte[0]), cm);
            case Errno.ETIMEDOUT -> because(new ConnectionException.TimedOut(message), cm);
            case Errno.ENETUNREACH, Errno.EHOSTUNREACH, Errno.ENODEV, Errno.EADDRNOTAVAIL ->
                new ConnectionException.Unreachable(message, cm);
            default -> new ConnectionException(message, cm);
        };
    }

    /**
     * An event that ended the attempt.
     *
     * @param what was being done: the attempt with its address, and the step
     * @param event what came instead
     */
    static Throwable of(String what, CmEvent event) {
        String message = what + ": " + event.describe();
        if (event.type() == CmEventType.ADDR_ERROR && event.status() == OWN_STEP_FAILED) {
            NativeRdmaException unopened = VerbsProvider.openFailure();
            if (unopened != null) {
                return new ConnectionException.Unreachable(what + ": " + unopened.getMessage(), unopened);
            }
        }
        CmException cm = event.toException("setting up the connection");
        return switch (event.type()) {
            case REJECTED ->
                because(
                        RejectReason.of(event.status()) == RejectReason.TIMEOUT
                                ? new ConnectionException.TimedOut(message)
                                : new ConnectionException.Rejected(message + otherProvider(event), event.privateData()),
                        cm);
            case ADDR_ERROR, ROUTE_ERROR, UNREACHABLE, DEVICE_REMOVAL ->
                new ConnectionException.Unreachable(message, cm);
            case CONNECT_ERROR ->
                switch (-event.status()) {
                    case Errno.ECONNREFUSED ->
                        because(new ConnectionException.Rejected(message, event.privateData()), cm);
                    case Errno.ETIMEDOUT -> because(new ConnectionException.TimedOut(message), cm);
                    default -> new ConnectionException(message, cm);
                };
            default -> new ConnectionException(message, cm);
        };
    }

    /** InfiniBand and RoCE report a server of the soft provider, which listens on TCP, as if no server listened. */
    private static String otherProvider(CmEvent event) {
        return RejectReason.of(event.status()) == RejectReason.INVALID_SERVICE_ID
                ? "; a server on the soft provider cannot be reached over this device: start it with provider verbs"
                : "";
    }

    private static ConnectionException because(ConnectionException exception, Throwable cause) {
        exception.initCause(cause);
        return exception;
    }
}
