package org.verbena.doctor;

/** The result of a check, from the best to the worst. */
public enum Verdict {
    /** As it should be. */
    OK,
    /** Missing or not checked, because this machine lacks something; the evidence says what. */
    SKIPPED,
    /** It works, but not as well, or not under as much load, as it could. */
    WARNING,
    /** It does not work. */
    FAILURE
}
