package org.verbena.doctor;

/** What a check came to, from the best to the worst. */
public enum Verdict {
    /** As it should be. */
    OK,
    /** Not there or not looked at, because this machine lacks something; the evidence says what. */
    SKIPPED,
    /** It works, but not as well or not for as long as it could. */
    WARNING,
    /** It does not work. */
    FAILURE
}
