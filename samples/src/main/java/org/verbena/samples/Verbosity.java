package org.verbena.samples;

import picocli.CommandLine.Option;

/**
 * The option {@code -v}, for commands to mix in: logs at debug level. It works because options are parsed before the first logger is
 * made; logback.xml reads the property.
 */
final class Verbosity {
    private static final String LEVEL = "org.verbena.log.level";

    @Option(
            names = {"-v", "--verbose"},
            description = "Log what happens, to standard error.")
    void raise(boolean raised) {
        if (raised) {
            raise();
        }
    }

    /** The same, for commands whose {@code -v} means something else. */
    static void raise() {
        System.setProperty(LEVEL, "DEBUG");
    }

    static boolean isRaised() {
        return System.getProperty(LEVEL) != null;
    }
}
