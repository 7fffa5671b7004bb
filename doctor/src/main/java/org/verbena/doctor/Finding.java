package org.verbena.doctor;

import java.util.Objects;

/**
 * The outcome of one check.
 *
 * @param check what was checked, in a few words
 * @param verdict the result
 * @param evidence what was seen: values, files, messages of the system
 * @param remedy what to do, empty if there is nothing to do
 */
public record Finding(String check, Verdict verdict, String evidence, String remedy) {

    /** Refuses components that are null. */
    public Finding {
        Objects.requireNonNull(check, "check");
        Objects.requireNonNull(verdict, "verdict");
        Objects.requireNonNull(evidence, "evidence");
        Objects.requireNonNull(remedy, "remedy");
    }

    /** The same, for a machine that need not have what is missing: no failure, but still what to do. */
    Finding excused() {
        return verdict.compareTo(Verdict.SKIPPED) > 0 ? new Finding(check, Verdict.SKIPPED, evidence, remedy) : this;
    }

    /** The same, for something that the program does not ask for. */
    Finding asWarning() {
        return verdict == Verdict.FAILURE ? new Finding(check, Verdict.WARNING, evidence, remedy) : this;
    }

    static Finding ok(String check, String evidence) {
        return new Finding(check, Verdict.OK, evidence, "");
    }

    static Finding skipped(String check, String evidence) {
        return new Finding(check, Verdict.SKIPPED, evidence, "");
    }

    static Finding warning(String check, String evidence, String remedy) {
        return new Finding(check, Verdict.WARNING, evidence, remedy);
    }

    static Finding failure(String check, String evidence, String remedy) {
        return new Finding(check, Verdict.FAILURE, evidence, remedy);
    }

    /** The finding for an exception whose message contains the remedy, as in Verbena's exceptions. */
    static Finding failure(String check, Throwable cause) {
        String message = cause.getMessage();
        return failure(check, message == null ? cause.toString() : message, "");
    }
}
