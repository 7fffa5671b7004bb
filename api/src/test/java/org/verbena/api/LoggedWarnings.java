package org.verbena.api;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.core.AppenderBase;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/** Records what is logged at WARN and above, or at INFO too, until closed: failures that no caller learns of. */
final class LoggedWarnings implements AutoCloseable {
    private final AtomicInteger stacks = new AtomicInteger();
    private final Logger logger;
    private final Level least;
    private final @Nullable Level before;
    private final List<String> texts = new CopyOnWriteArrayList<>();

    private final AppenderBase<ILoggingEvent> appender = new AppenderBase<>() {
        @Override
        protected void append(ILoggingEvent event) {
            if (event.getLevel().isGreaterOrEqual(least)) {
                IThrowableProxy thrown = event.getThrowableProxy();
                stacks.addAndGet(thrown == null ? 0 : 1);
                texts.add(event.getLoggerName() + ": " + event.getFormattedMessage()
                        + (thrown == null ? "" : " " + thrown.getClassName() + ": " + thrown.getMessage()));
            }
        }
    };

    /**
     * Begins to listen.
     *
     * @param loggers the name of a package whose loggers are listened to
     */
    LoggedWarnings(String loggers) {
        this(loggers, Level.WARN);
    }

    LoggedWarnings(String loggers, Level least) {
        this.least = least;
        logger = (Logger) LoggerFactory.getLogger(loggers);
        appender.setContext(logger.getLoggerContext());
        appender.start();
        before = logger.getLevel();
        if (!logger.isEnabledFor(least)) {
            logger.setLevel(least);
        }
        logger.addAppender(appender);
    }

    /** How many of them have a stack. */
    int stacks() {
        return stacks.get();
    }

    /** So far. */
    List<String> texts() {
        return texts;
    }

    @Override
    public void close() {
        logger.setLevel(before);
        logger.detachAppender(appender);
        appender.stop();
    }
}
