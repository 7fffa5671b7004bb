package org.verbena.it.skips;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A test that did not run to its end because it was disabled or an assumption did not hold.
 *
 * @param className its class
 * @param name its method with parameters and the number of its invocation, as the reports have it; empty if the class
 *     was skipped
 * @param reason why
 */
record SkippedTest(String className, String name, String reason) {
    /** Where a method's name ends: "name(int, String)[3]", "name{int}[1]". */
    private static final Pattern AFTER_THE_METHOD = Pattern.compile("[({\\[].*", Pattern.DOTALL);

    private static final Pattern RXE = Pattern.compile("rxe", Pattern.CASE_INSENSITIVE);
    private static final Pattern SIW = Pattern.compile("siw", Pattern.CASE_INSENSITIVE);

    /** Its class without the package, and its method without parameters: {@code OuterTest$Inner#method}. */
    String method() {
        String simple = className.substring(className.lastIndexOf('.') + 1);
        String method = AFTER_THE_METHOD.matcher(name).replaceFirst("");
        return method.isEmpty() ? simple : simple + "#" + method;
    }

    /**
     * The device of the lab that its class is for, by its name; {@value AllowedSkip#ANY_DEVICE} if it is for none
     * alone.
     */
    String device() {
        Matcher rxe = RXE.matcher(className);
        Matcher siw = SIW.matcher(className);
        if (rxe.find()) {
            return "rxe0";
        }
        return siw.find() ? "siw0" : AllowedSkip.ANY_DEVICE;
    }

    /** The reason on one line. */
    String shortReason() {
        return reason.strip().replaceAll("\\s+", " ");
    }
}
