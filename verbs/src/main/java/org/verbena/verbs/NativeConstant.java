package org.verbena.verbs;

/** A constant that C has too: a test compares name and value with the headers. */
interface NativeConstant {
    /**
     * What C has.
     *
     * @return the value
     */
    int value();

    /**
     * What C calls it.
     *
     * @return the name; that of UNKNOWN constants may not exist
     */
    String cName();
}
