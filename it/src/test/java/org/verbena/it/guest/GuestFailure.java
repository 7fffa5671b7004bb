package org.verbena.it.guest;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import org.jspecify.annotations.Nullable;
import org.opentest4j.TestAbortedException;

/**
 * A throwable of the guest on its way to the host, where its class need not be loadable.
 *
 * @param className the throwable's class
 * @param message its message
 * @param assertion whether it is an assertion's
 * @param trace its stack
 * @param cause its cause
 */
record GuestFailure(
        String className,
        @Nullable String message,
        boolean assertion,
        StackTraceElement[] trace,
        @Nullable GuestFailure cause) {
    /** Deeper chains of causes are cut: they may be cyclic. */
    private static final int MAX_CAUSES = 10;

    static GuestFailure of(Throwable thrown) {
        return of(thrown, MAX_CAUSES);
    }

    private static GuestFailure of(Throwable thrown, int causesLeft) {
        Throwable cause = thrown.getCause();
        return new GuestFailure(
                thrown.getClass().getName(),
                thrown.getMessage(),
                thrown instanceof AssertionError,
                thrown.getStackTrace(),
                cause == null || causesLeft == 0 ? null : of(cause, causesLeft - 1));
    }

    /** What to throw on the host for a test that failed. */
    Throwable toThrowable() {
        Throwable cause = this.cause == null ? null : this.cause.toThrowable();
        Throwable thrown =
                assertion ? new GuestAssertionError(describe(), cause) : new GuestException(describe(), cause);
        thrown.setStackTrace(trace);
        return thrown;
    }

    /** What to throw on the host for a test whose assumption did not hold. */
    TestAbortedException toAborted() {
        TestAbortedException aborted = new TestAbortedException(message == null ? className : message);
        aborted.setStackTrace(trace);
        return aborted;
    }

    private String describe() {
        return message == null ? className : className + ": " + message;
    }

    void writeTo(DataOutputStream out) throws IOException {
        LabEvent.writeText(out, className);
        out.writeBoolean(message != null);
        if (message != null) {
            LabEvent.writeText(out, message);
        }
        out.writeBoolean(assertion);
        out.writeInt(trace.length);
        for (StackTraceElement element : trace) {
            LabEvent.writeText(out, element.getClassName());
            LabEvent.writeText(out, element.getMethodName());
            LabEvent.writeText(out, String.valueOf(element.getFileName()));
            out.writeInt(element.getLineNumber());
        }
        out.writeBoolean(cause != null);
        if (cause != null) {
            cause.writeTo(out);
        }
    }

    static GuestFailure readFrom(DataInputStream in) throws IOException {
        String className = LabEvent.readText(in);
        String message = in.readBoolean() ? LabEvent.readText(in) : null;
        boolean assertion = in.readBoolean();
        StackTraceElement[] trace = new StackTraceElement[in.readInt()];
        for (int i = 0; i < trace.length; i++) {
            trace[i] = new StackTraceElement(
                    LabEvent.readText(in), LabEvent.readText(in), LabEvent.readText(in), in.readInt());
        }
        return new GuestFailure(className, message, assertion, trace, in.readBoolean() ? readFrom(in) : null);
    }

    /** An exception that was thrown in the guest. */
    static final class GuestException extends Exception {
        private static final long serialVersionUID = 1;

        GuestException(String message, @Nullable Throwable cause) {
            super(message, cause);
        }

        @Override
        public String toString() {
            return String.valueOf(getMessage());
        }
    }

    /** An assertion that failed in the guest. */
    static final class GuestAssertionError extends AssertionError {
        private static final long serialVersionUID = 1;

        GuestAssertionError(String message, @Nullable Throwable cause) {
            super(message, cause);
        }

        @Override
        public String toString() {
            return String.valueOf(getMessage());
        }
    }
}
