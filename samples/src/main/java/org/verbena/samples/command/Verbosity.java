package org.verbena.samples.command;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Option;

/** A mixin: the option {@code -v}, which logs at debug level. */
public final class Verbosity {
    /** The loggers that {@link CommandLogging} makes quiet. */
    public static final String LOGGERS = "org.verbena";

    private static volatile boolean raised;

    @Option(
            names = {"-v", "--verbose"},
            description = "Log to standard error.")
    public void raise(boolean wanted) {
        if (wanted) {
            raise();
        }
    }

    /** The same, for commands whose {@code -v} means something else. */
    public static void raise() {
        raised = true;
        // Loggers were made before the options were read, since commands have loggers of their own.
        if (LoggerFactory.getLogger(LOGGERS) instanceof Logger logger) {
            logger.setLevel(Level.DEBUG);
        }
    }

    public static boolean isRaised() {
        return raised;
    }
}
