package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaClient;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.Target;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.Patience;

/** What callers meet while the thread that looks after the connections of all clients is busy. */
@Timeout(120)
class WaitingTest {
    private static final Target NOWHERE = Target.resolver(found -> () -> {});

    private static RdmaClient.Builder builder() {
        return RdmaClient.builder().provider("soft").target(NOWHERE);
    }

    private static CountDownLatch holdControl() {
        CountDownLatch held = new CountDownLatch(1);
        Control.of(LoopClock.system()).submit(() -> {
            try {
                assertThat(held.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                        .isTrue();
            } catch (InterruptedException interruption) {
                throw new IllegalStateException(interruption);
            }
        });
        return held;
    }

    private static Throwable failure(CompletableFuture<?> future) {
        Patience.until("it has ended", future::isDone);
        return future.exceptionNow();
    }

    @Test
    void whatFindsNoConnectionIsBoundedAtOnce() {
        List<CompletableFuture<byte[]>> accepted = new ArrayList<>();
        try (RdmaClient client = builder().maxPending(10, 1 << 20).start()) {
            CountDownLatch held = holdControl();
            try {
                for (int i = 0; i < 10; i++) {
                    accepted.add(client.request(new byte[i]));
                }
                assertThat(failure(client.request(new byte[1]))).isInstanceOf(SendLimitException.class);
                assertThat(accepted).noneMatch(CompletableFuture::isDone);
            } finally {
                held.countDown();
            }
        }
        accepted.forEach(each -> assertThat(failure(each)).isInstanceOf(ConnectionException.class));
    }

    @Test
    void aClientThatFailsFastDoesNotWaitForTheThread() {
        Target failing = Target.resolver(found -> {
            throw new IllegalStateException("no registry");
        });
        try (RdmaClient client = builder().target(failing).failFast().start()) {
            Patience.until("it has failed", () -> client.state() == ClientState.BACKING_OFF);
            CountDownLatch held = holdControl();
            try {
                assertThat(failure(client.request(new byte[1]))).isInstanceOf(ConnectionException.Unavailable.class);
            } finally {
                held.countDown();
            }
        }
    }
}
