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

    /**
     * A set of flags as C has it.
     *
     * @param flags any
     * @return the bits
     */
    static int mask(Iterable<? extends NativeConstant> flags) {
        int mask = 0;
        for (NativeConstant flag : flags) {
            mask |= flag.value();
        }
        return mask;
    }
}
