package org.verbena.verbs.ffm;

/** Checks ranges, and names the attribute that is out of its range. */
public final class Ranges {
    private Ranges() {}

    /**
     * Checks a value.
     *
     * @param name what it is
     * @param value of it
     * @param min the least
     * @param max the most
     * @return the value
     */
    public static int check(String name, int value, int min, int max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(name + " " + value + " is outside " + min + " to " + max);
        }
        return value;
    }
}
