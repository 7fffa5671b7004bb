package org.verbena.transport.spi;

/**
 * Reads options from system properties, for providers and buffers. The exception for an invalid value names the
 * property.
 */
public final class OptionProperties {
    private OptionProperties() {}

    /**
     * A whole number.
     *
     * @param property its full name
     * @param max the largest value; the smallest is 0
     * @param otherwise the default
     * @return the number
     * @throws IllegalArgumentException the value is malformed or out of range
     */
    public static long number(String property, long max, long otherwise) {
        String value = System.getProperty(property);
        if (value == null) {
            return otherwise;
        }
        try {
            long number = Long.parseLong(value);
            if (number >= 0 && number <= max) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // The exception below reports it.
        }
        throw new IllegalArgumentException(property + " is '" + value + "'; give a number from 0 to " + max);
    }

    /**
     * A whole number within the range of {@code int}.
     *
     * @param property its full name
     * @param otherwise the default
     * @return the number
     * @throws IllegalArgumentException the value is malformed or out of range
     */
    public static int number(String property, int otherwise) {
        return (int) number(property, Integer.MAX_VALUE, otherwise);
    }

    /**
     * A boolean.
     *
     * @param property its full name
     * @param otherwise the default
     * @return whether it is {@code true}
     * @throws IllegalArgumentException it is neither {@code true} nor {@code false}
     */
    public static boolean flag(String property, boolean otherwise) {
        String value = System.getProperty(property);
        if (value == null) {
            return otherwise;
        }
        if (!value.equals("true") && !value.equals("false")) {
            throw new IllegalArgumentException(property + " is '" + value + "'; give true or false");
        }
        return value.equals("true");
    }
}
