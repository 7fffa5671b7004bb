package org.verbena.verbs.ffm;

import java.util.EnumSet;

/** A constant that C has too: a test compares name and value with the headers. */
public interface NativeConstant {
    /**
     * The value in C.
     *
     * @return the value
     */
    int value();

    /**
     * The name in C.
     *
     * @return the name; that of UNKNOWN constants may not exist
     */
    String cName();

    /**
     * The constant of a C value.
     *
     * @param <E> the kind of constant
     * @param all to look among
     * @param value as C has it
     * @param otherwise for values that have none
     * @return the constant
     */
    static <E extends NativeConstant> E of(E[] all, int value, E otherwise) {
        for (E constant : all) {
            if (constant.value() == value) {
                return constant;
            }
        }
        return otherwise;
    }

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

    /**
     * C's bits as a set.
     *
     * @param <E> the kind of flag
     * @param type of the flags
     * @param mask any; bits without a name are left out
     * @return the flags
     */
    static <E extends Enum<E> & NativeConstant> EnumSet<E> set(Class<E> type, int mask) {
        EnumSet<E> flags = EnumSet.allOf(type);
        flags.removeIf(flag -> (mask & flag.value()) == 0);
        return flags;
    }
}
