package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/** The thread of the clients' steps when there may be no other. It would end as soon as it has nothing to do. */
@Timeout(120)
class ControlThreadTest {
    private static final int STEPS = 100;

    private final AtomicInteger made = new AtomicInteger();
    private final AtomicInteger refusals = new AtomicInteger();

    private final ControlThread control = new ControlThread(
            work -> {
                if (refusals.getAndDecrement() > 0) {
                    throw new OutOfMemoryError("unable to create native thread");
                }
                made.incrementAndGet();
                return Thread.ofPlatform().daemon().unstarted(work);
            },
            1);

    private void runSteps() {
        for (int i = 0; i < STEPS; i++) {
            CompletableFuture<Thread> step = new CompletableFuture<>();
            control.submit(() -> step.complete(Thread.currentThread()));
            Thread ran = Patience.await("a step", step);
            Patience.until("it waits, or has ended", () -> ran.getState() != Thread.State.RUNNABLE);
        }
    }

    @Test
    void staysAsLongAsThereIsAClient() {
        control.enter();
        runSteps();
        assertThat(made).hasValue(1);
        control.leave();
        runSteps();
        assertThat(made).hasValueGreaterThan(1);
    }

    @Test
    void aClientForWhichThereIsNoThreadDoesNotBegin() {
        refusals.set(1);
        assertThatThrownBy(control::enter).isInstanceOf(OutOfMemoryError.class);
        control.enter();
        runSteps();
        assertThat(made).hasValue(1);
        control.leave();
    }
}
