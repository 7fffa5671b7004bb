package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.verbena.transport.soft.PeerErrorLog.Kind;
import org.verbena.transport.spi.RateLimitedLog;

/** The log has the first incidents, and how many more there were; the test controls the time. */
class PeerErrorLogTest {
    private final ListAppender<ILoggingEvent> appender = new ListAppender<>();
    private final Logger logger = (Logger) LoggerFactory.getLogger(PeerErrorLog.class);
    private long now = Long.MAX_VALUE - 5;
    private final PeerErrorLog incidents = new PeerErrorLog(() -> now);

    @BeforeEach
    void listen() {
        appender.start();
        logger.addAppender(appender);
        logger.setAdditive(false);
    }

    @AfterEach
    void stop() {
        logger.detachAppender(appender);
        logger.setAdditive(true);
    }

    private List<String> lines() {
        return appender.list.stream().map(ILoggingEvent::getFormattedMessage).toList();
    }

    @Test
    void logsSomeAndCountsAll() {
        for (int i = 0; i < 1_000; i++) {
            incidents.report(Kind.HANDSHAKE, "no. " + i);
        }
        assertThat(lines()).hasSize(RateLimitedLog.LINES_PER_PERIOD).startsWith("no. 0", "no. 1");
        now += RateLimitedLog.PERIOD_NANOS;
        incidents.report(Kind.HANDSHAKE, "later");
        assertThat(lines())
                .last()
                .isEqualTo("later (and " + (1_000 - RateLimitedLog.LINES_PER_PERIOD)
                        + " more of this kind since the last line)");
        assertThat(incidents.count(Kind.HANDSHAKE)).isEqualTo(1_001);
        assertThat(incidents.count(Kind.SEGMENT)).isZero();
    }

    @Test
    void oneKindDoesNotHideAnother() {
        for (int i = 0; i < 1_000; i++) {
            incidents.report(Kind.HANDSHAKE, "a stranger");
        }
        incidents.report(Kind.LOCAL, "no memory");
        assertThat(lines()).last().isEqualTo("no memory");
    }
}
