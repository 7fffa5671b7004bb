package org.verbena.samples.command;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.ClassicConstants;
import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator.ExecutionStatus;
import ch.qos.logback.classic.util.LogbackMDCAdapter;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

class CommandLoggingTest {
    private final LoggerContext context = new LoggerContext();

    @Test
    void isWhatLogbackFinds() {
        Logger root = LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME);
        assertThat(((ch.qos.logback.classic.Logger) root).getLevel()).isEqualTo(Level.WARN);
        assertThat(LoggerFactory.getLogger("org.verbena.any").isInfoEnabled()).isFalse();
    }

    @Test
    void logsWarningsToStandardError() {
        PrintStream before = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setErr(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            context.setMDCAdapter(new LogbackMDCAdapter());
            CommandLogging logging = new CommandLogging();
            assertThat(logging.configure(context)).isEqualTo(ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY);
            context.getLogger("org.verbena.Some").warn("a {}", "warning", new IllegalStateException("and why"));
            context.getLogger("org.verbena.Some").info("unseen");
        } finally {
            System.setErr(before);
        }
        assertThat(printed.toString(StandardCharsets.UTF_8))
                .containsPattern("^\\d\\d:\\d\\d:\\d\\d\\.\\d{3} WARN  \\[.*] Some: a warning")
                .contains("and why", getClass().getName())
                .doesNotContain("unseen");
    }

    @Test
    void leavesItToAFileThatTheUserNames() {
        System.setProperty(ClassicConstants.CONFIG_FILE_PROPERTY, "mine.xml");
        try {
            assertThat(new CommandLogging().configure(context)).isEqualTo(ExecutionStatus.INVOKE_NEXT_IF_ANY);
        } finally {
            System.clearProperty(ClassicConstants.CONFIG_FILE_PROPERTY);
        }
    }
}
