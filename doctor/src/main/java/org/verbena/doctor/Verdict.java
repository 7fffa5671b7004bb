package org.verbena.doctor;

/** What a check came to, from the best to the worst. */
public enum Verdict {
    /** As it should be. */
    OK,
    /** Not looked at, because something that it needs is missing; the evidence says what. */
    SKIPPED,
    /** It works, but not as well or not for as long as it could. */
    WARNING,
    /** It does not work. */
    FAILURE
}
