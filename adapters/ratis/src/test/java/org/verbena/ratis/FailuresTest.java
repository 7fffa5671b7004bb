package org.verbena.ratis;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.ratis.protocol.exceptions.GroupMismatchException;
import org.apache.ratis.protocol.exceptions.NotLeaderException;
import org.apache.ratis.protocol.exceptions.ServerNotReadyException;
import org.apache.ratis.protocol.exceptions.TimeoutIOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;

@Timeout(10)
class FailuresTest {
    private static RequestFailure answerOf(String name) {
        return new RequestFailure(0, "words", name.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void anExceptionOfRatisArrivesAsItIs() {
        for (IOException thrown : new IOException[] {
            new GroupMismatchException("words"), new ServerNotReadyException("words"), new TimeoutIOException("words")
        }) {
            assertThat(Failures.ioException(Failures.answer(new CompletionException(thrown))))
                    .isExactlyInstanceOf(thrown.getClass())
                    .hasMessage("words");
        }
    }

    /** A server could name any class. */
    @Test
    void noOtherClassIsMade() {
        for (String name : new String[] {
            FileNotFoundException.class.getName(),
            NotLeaderException.class.getName(), // needs more than words
            "org.apache.ratis.protocol.exceptions.None",
            "org.apache.ratis.protocol.exceptions.../None",
            ""
        }) {
            assertThat(Failures.ioException(answerOf(name))).isExactlyInstanceOf(IOException.class);
        }
    }

    @Test
    void whatIsNotRatisStaysWithItsServer() {
        IllegalStateException defect = new IllegalStateException("a defect");
        assertThat(Failures.answer(defect)).isSameAs(defect);
    }

    @Test
    void aFutureHasTheFailureItself() {
        IOException failure = new GroupMismatchException("words");
        CompletableFuture<Void> stage =
                CompletableFuture.<Void>failedFuture(failure).thenApply(result -> result);
        Failures.bare(stage)
                .whenComplete((result, thrown) -> assertThat(thrown).isSameAs(failure))
                .exceptionNow();
    }

    /** In a log, where there is one for each append that fails. */
    private static void isOneLine(Throwable failure) {
        assertThat(failure).hasNoCause();
        assertThat(failure.getStackTrace()).isEmpty();
    }

    @Test
    void aLostConnectionAndATimeoutAreTriedAgainOnAnotherConnection() {
        assertThat(Failures.ioException(new ConnectionException.Lost("lost")))
                .isInstanceOf(SocketException.class)
                .satisfies(FailuresTest::isOneLine);
        assertThat(Failures.ioException(new RequestException.TimedOut("late")))
                .isInstanceOf(TimeoutIOException.class)
                .satisfies(FailuresTest::isOneLine);
        assertThat(Failures.ioException(new IllegalStateException())).isExactlyInstanceOf(IOException.class);
    }
}
