package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.verbena.api.Carrier;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.spi.Patience;

/**
 * A client that loses its device under load and comes back on the next rung. In a process of its own, as {@link
 * DeviceLoss} is.
 */
public final class LadderLoss {
    private static final int REQUESTS_UNDER_WAY = 16;

    private LadderLoss() {}

    /**
     * Runs.
     *
     * @param arguments the device that will be lost, and its address
     */
    public static void main(String[] arguments) {
        try {
            lose(arguments[0], arguments[1]);
            System.out.println("done");
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void lose(String device, String address) throws Exception {
        try (RdmaServer server = RdmaServer.builder()
                        .provider("verbs+soft")
                        .threadsPerProvider(1)
                        .bind(address, 0, LadderTest.ECHO);
                RdmaClient first = RdmaClient.builder()
                        .ladder(LadderTest.PATIENT)
                        .reconnect(false)
                        .connect(address, server.port())) {
            assertThat(first.ladder().rung()).isEqualTo("verbs");
            AtomicInteger replies = new AtomicInteger();
            AtomicInteger open = new AtomicInteger();
            for (int i = 0; i < REQUESTS_UNDER_WAY; i++) {
                open.incrementAndGet();
                ask(first, replies, open);
            }
            Patience.until("the load runs", () -> replies.get() > 1000);
            Process removing = new ProcessBuilder("rdma", "link", "delete", device)
                    .inheritIO()
                    .start();
            assertThat(first.channel().closeFuture().awaitUninterruptibly(Patience.LIMIT.toMillis()))
                    .isTrue();
            long lost = System.nanoTime();
            try (RdmaClient again =
                    RdmaClient.builder().ladder(LadderOptions.DEFAULTS).connect(address, server.port())) {
                LadderTest.assertServes(again);
                long backNanos = System.nanoTime() - lost;
                // A figure to read, and no limit: it is the guest's pace.
                System.out.printf(
                        "back after %d ms: %s%n",
                        TimeUnit.NANOSECONDS.toMillis(backNanos), again.ladder().reason());
                assertThat(again.ladder().rung()).isEqualTo("soft");
                assertThat(List.copyOf(server.connections()))
                        .extracting(child -> Carrier.of(child).name())
                        .contains("soft");
            }
            Patience.until("each request has ended", () -> open.get() == 0);
            assertThat(removing.waitFor(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .as("the device is gone while this process goes on")
                    .isTrue();
        }
    }

    /** One request after another, until one fails. */
    private static void ask(RdmaClient client, AtomicInteger replies, AtomicInteger open) {
        CompletableFuture<byte[]> asked = client.request(new byte[512]);
        asked.whenComplete((reply, failure) -> {
            if (failure == null) {
                replies.incrementAndGet();
                ask(client, replies, open);
            } else {
                open.decrementAndGet();
            }
        });
    }
}
