package org.verbena.it.guest;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * Something that happened in the guest, as one record of the event log.
 *
 * @param kind what happened
 * @param id the test's or container's unique id in Jupiter; empty where there is none
 * @param text what {@link Kind} says
 * @param test how a test that came up during the run is to be shown; for {@link Kind#REGISTERED} alone
 * @param failure why it failed; for {@link Kind#FAILED} and {@link Kind#ABORTED} alone
 */
record LabEvent(
        Kind kind,
        String id,
        String text,
        @Nullable Registered test,
        @Nullable GuestFailure failure) {

    /** What happened. */
    enum Kind {
        /** A test came up while its container ran, such as the invocation of a parameterised test. */
        REGISTERED,
        /** It starts. */
        STARTED,
        /** It was skipped; {@code text} is the reason. */
        SKIPPED,
        /** It ended well. */
        SUCCESSFUL,
        /** An assumption did not hold. */
        ABORTED,
        /** It failed. */
        FAILED,
        /** It published {@code text}. */
        REPORTED,
        /** The JVM printed {@code text} to its standard output. */
        OUTPUT,
        /** All tests of a batch have run. */
        BATCH_DONE
    }

    /**
     * A test that came up during the run.
     *
     * @param parentId the unique id of the container it is in
     * @param displayName its name for people
     * @param legacyName its name for reports
     * @param container whether it has tests rather than is one
     * @param className the class it is in, or empty
     * @param methodName the method it is, or empty
     * @param parameterTypes the method's parameter types, separated by commas
     */
    record Registered(
            String parentId,
            String displayName,
            String legacyName,
            boolean container,
            String className,
            String methodName,
            String parameterTypes) {}

    static LabEvent of(Kind kind, String id, String text) {
        return new LabEvent(kind, id, text, null, null);
    }

    void writeTo(DataOutputStream out) throws IOException {
        out.writeUTF(kind.name());
        writeText(out, id);
        writeText(out, text);
        out.writeBoolean(test != null);
        if (test != null) {
            writeText(out, test.parentId);
            writeText(out, test.displayName);
            writeText(out, test.legacyName);
            out.writeBoolean(test.container);
            writeText(out, test.className);
            writeText(out, test.methodName);
            writeText(out, test.parameterTypes);
        }
        out.writeBoolean(failure != null);
        if (failure != null) {
            failure.writeTo(out);
        }
    }

    static LabEvent readFrom(DataInputStream in) throws IOException {
        Kind kind = Kind.valueOf(in.readUTF());
        String id = readText(in);
        String text = readText(in);
        Registered test = in.readBoolean()
                ? new Registered(
                        readText(in),
                        readText(in),
                        readText(in),
                        in.readBoolean(),
                        readText(in),
                        readText(in),
                        readText(in))
                : null;
        GuestFailure failure = in.readBoolean() ? GuestFailure.readFrom(in) : null;
        return new LabEvent(kind, id, text, test, failure);
    }

    /** As writeUTF, which ends at 64 KiB, without that limit. */
    static void writeText(DataOutputStream out, String text) throws IOException {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    static String readText(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return new String(bytes, java.nio.charset.StandardCharsets.UTF_8);
    }
}
