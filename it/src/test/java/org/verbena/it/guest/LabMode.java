package org.verbena.it.guest;

import java.util.Locale;

/** Whether the lab's tests run: the property {@code lab} of the build. */
enum LabMode {
    /** Where there can be a lab; otherwise they are skipped, with the reason. */
    AUTO,
    /** Always; where there can be no lab they fail. */
    REQUIRE,
    /** As {@link #REQUIRE}, and those that are left out of the other runs as well. */
    FULL,
    /** Never. */
    OFF;

    static LabMode parse(String value) {
        try {
            return valueOf(value.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("-Dlab=" + value + ": use auto, require, full or off", e);
        }
    }

    /** Whether it is a failure that there can be no lab. */
    boolean isRequired() {
        return this == REQUIRE || this == FULL;
    }
}
