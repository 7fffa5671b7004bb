package org.verbena.samples.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** On a clock and a compiler of the test's. */
class WarmUpTest {
    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(3);

    private long nanos = 42;
    private long compiledNanos;
    private final List<Long> windows = new ArrayList<>();
    private final WarmUp warmUp = new WarmUp(() -> nanos, () -> compiledNanos);

    /** Windows with these medians in turn, the last one for ever. */
    private WarmUp.Outcome run(long maxNanos, int... medianMicros) throws InterruptedException {
        return warmUp.run(
                window -> {
                    Measurement measured = new Measurement();
                    int micros = medianMicros[Math.min(windows.size(), medianMicros.length - 1)];
                    windows.add(window);
                    if (micros > 0) {
                        measured.record(TimeUnit.MICROSECONDS.toNanos(micros));
                    }
                    nanos += window;
                    return measured;
                },
                maxNanos);
    }

    @Test
    void endsWhenTwoWindowsAgree() throws Exception {
        assertThat(run(MAX_NANOS, 140, 75, 20, 12, 11))
                .isEqualTo(new WarmUp.Outcome(TimeUnit.MILLISECONDS.toNanos(1000), 5, true));
    }

    @Test
    void endsWhenTheTimeIsOver() throws Exception {
        int[] neverTheSame = new int[100];
        for (int i = 0; i < neverTheSame.length; i++) {
            neverTheSame[i] = 10 + i % 2 * 10;
        }
        assertThat(run(MAX_NANOS + 1, neverTheSame)).isEqualTo(new WarmUp.Outcome(MAX_NANOS + 1, 16, false));
        assertThat(windows.getLast()).as("what was left").isEqualTo(1);
    }

    @Test
    void isNotSteadyWhileTheCompilerWorks() throws Exception {
        WarmUp.Outcome outcome = new WarmUp(() -> nanos, () -> Math.min(nanos, TimeUnit.SECONDS.toNanos(1)))
                .run(
                        window -> {
                            nanos += window;
                            Measurement measured = new Measurement();
                            measured.record(75_000);
                            return measured;
                        },
                        MAX_NANOS);
        assertThat(outcome.isSteady()).isTrue();
        assertThat(outcome.nanos()).isBetween(TimeUnit.SECONDS.toNanos(1), TimeUnit.MILLISECONDS.toNanos(1400));
    }

    @Test
    void windowsWithoutAnOperationDoNotAgree() throws Exception {
        assertThat(run(MAX_NANOS, 0).isSteady()).isFalse();
    }

    @Test
    void runsNoneWithoutTime() throws Exception {
        assertThat(run(0, 10)).isEqualTo(new WarmUp.Outcome(0, 0, false));
        assertThat(windows).isEmpty();
    }

    @Test
    void countsWhatOtherProcessesTook() {
        Duration all = Conditions.busy("cpu  100 10 20 5000 7 3 4 9 0 0\ncpu0 1 1 1\n");
        assertThat(all).isEqualTo(Duration.ofMillis(1370));
        Conditions.Usage before = new Conditions.Usage(0, all, Duration.ofMillis(200));
        Conditions.Usage after =
                new Conditions.Usage(TimeUnit.SECONDS.toNanos(2), all.plusMillis(3000), Duration.ofMillis(200 + 1400));
        assertThat(after.othersSince(before)).isCloseTo(0.8, within(1e-9));
    }

    @Test
    void saysHowLongItWarmedAndWhatElseRan() {
        Conditions conditions = new Conditions();
        conditions.add(new WarmUp.Outcome(TimeUnit.MILLISECONDS.toNanos(400), 1, true));
        conditions.add(new WarmUp.Outcome(TimeUnit.MILLISECONDS.toNanos(3000), 1, false));
        assertThat(conditions.line())
                .startsWith("Warm-up: 1.7 s a line, in which 1 of 2 did not become steady. ")
                .contains("Load average: ");
        assertThat(conditions.members().unsteadyLines()).isOne();
    }
}
