package org.verbena.samples.command;

import ch.qos.logback.classic.ClassicConstants;
import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.encoder.PatternLayoutEncoder;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.ConsoleAppender;
import ch.qos.logback.core.joran.spi.ConsoleTarget;
import ch.qos.logback.core.spi.ContextAwareBase;

/**
 * Logback's configuration: logs go to standard error, results to standard output. Quiet unless a command is given
 * {@code -v}, which raises the level. In code, since Logback and the XML parser load five hundred classes to read the
 * same from a file. A file is still read if {@code -Dlogback.configurationFile=} names one, and in tests that have one.
 */
public final class CommandLogging extends ContextAwareBase implements Configurator {
    /** For Logback, which finds it as a service. */
    public CommandLogging() {}

    @Override
    public ExecutionStatus configure(LoggerContext context) {
        if (System.getProperty(ClassicConstants.CONFIG_FILE_PROPERTY) != null
                || getClass().getClassLoader().getResource(ClassicConstants.TEST_AUTOCONFIG_FILE) != null) {
            return ExecutionStatus.INVOKE_NEXT_IF_ANY;
        }
        PatternLayoutEncoder encoder = new PatternLayoutEncoder();
        encoder.setContext(context);
        encoder.setPattern("%d{HH:mm:ss.SSS} %-5level [%thread] %logger{0}: %msg%n");
        encoder.start();
        ConsoleAppender<ILoggingEvent> standardError = new ConsoleAppender<>();
        standardError.setContext(context);
        standardError.setTarget(ConsoleTarget.SystemErr.getName());
        standardError.setEncoder(encoder);
        standardError.start();
        Logger root = context.getLogger(Logger.ROOT_LOGGER_NAME);
        root.setLevel(Level.WARN);
        root.addAppender(standardError);
        context.getLogger(Verbosity.LOGGERS).setLevel(Level.WARN);
        return ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY;
    }
}
