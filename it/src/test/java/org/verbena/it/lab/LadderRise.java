package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/**
 * A client on soft that moves up to verbs under load when the device comes up. In a process of its own, as {@link
 * DeviceLoss} is.
 */
public final class LadderRise {
    private static final int SENDERS = 3;
    private static final int WINDOW = 16;
    private static final int BEFORE_AND_AFTER = 300;

    private final Set<Long> seen = ConcurrentHashMap.newKeySet();
    private final AtomicLongArray handled = new AtomicLongArray(SENDERS);
    private final AtomicLongArray sent = new AtomicLongArray(SENDERS);
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private volatile boolean ends;

    private LadderRise() {}

    /**
     * Runs.
     *
     * @param arguments the device that will come up, the interface that it will be on, and its address
     */
    public static void main(String[] arguments) {
        try {
            new LadderRise().rise(arguments[0], arguments[1], arguments[2]);
            System.out.println("done");
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    /** Each sender's messages and requests have to come once, whichever connection brings them. */
    private MessageHandler counting() {
        return MessageHandler.ofBytes((exchange, message) -> {
            ByteBuffer numbers = ByteBuffer.wrap(message);
            int sender = numbers.getInt();
            long number = numbers.getLong();
            if (!seen.add((long) sender << 48 | number)) {
                violations.add("sender " + sender + ": " + number + " again");
            }
            handled.getAndIncrement(sender);
            if (exchange.isRequest()) {
                exchange.reply(message);
            }
        });
    }

    private void rise(String device, String netdev, String address) throws Exception {
        LadderOptions moving = LadderTest.PATIENT.withForgetAfter(Duration.ZERO).withMoveUp(Duration.ofMillis(200));
        try (RdmaServer soft = RdmaServer.builder()
                        .provider("soft")
                        .threadsPerProvider(1)
                        .bind(address, 0, counting());
                RdmaClient client = RdmaClient.builder().ladder(moving).connect(address, soft.port())) {
            assertThat(client.ladder().rung()).isEqualTo("soft");
            System.out.println(client.ladder().reason());
            RdmaChannel old = client.channel();
            List<Thread> senders = new ArrayList<>();
            for (int i = 0; i < SENDERS; i++) {
                int sender = i;
                senders.add(Thread.ofPlatform().start(() -> send(client, sender)));
            }
            awaitMore();
            PeerProgram.run(Patience.LIMIT, "rdma", "link", "add", device, "type", "rxe", "netdev", netdev);
            long up = System.nanoTime();
            try (RdmaServer verbs = listen(address, soft.port())) {
                Patience.until("it moves up", () -> client.provider().equals("verbs") || !violations.isEmpty());
                System.out.printf("moved up after %d ms%n", TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - up));
                awaitMore();
                ends = true;
                for (Thread sender : senders) {
                    assertThat(sender.join(Patience.LIMIT)).isTrue();
                }
                for (int i = 0; i < SENDERS; i++) {
                    int sender = i;
                    Patience.until("all are handled", () -> handled.get(sender) >= sent.get(sender));
                    assertThat(handled.get(sender)).isEqualTo(sent.get(sender));
                }
                assertThat(violations).isEmpty();
                assertThat(client.lateReplies()).isZero();
                Patience.until("the old connection has ended", () -> !old.isOpen());
                Patience.until("at the server, too", () -> soft.connections().size() == 0);
                assertThat(verbs.connections().size()).isEqualTo(1);
            }
        }
    }

    /** The device becomes active some time after it was added. */
    private RdmaServer listen(String address, int port) {
        return Patience.untilThere("a server", () -> {
            try {
                return RdmaServer.builder()
                        .provider("verbs")
                        .threadsPerProvider(1)
                        .bind(address, port, counting());
            } catch (ConnectionException notYet) {
                return null;
            }
        });
    }

    private void awaitMore() {
        long[] from = new long[SENDERS];
        for (int i = 0; i < SENDERS; i++) {
            from[i] = handled.get(i);
        }
        for (int i = 0; i < SENDERS; i++) {
            int sender = i;
            Patience.until(
                    "the load runs",
                    () -> handled.get(sender) > from[sender] + BEFORE_AND_AFTER || !violations.isEmpty());
        }
        assertThat(violations).isEmpty();
    }

    private void send(RdmaClient client, int sender) {
        Deque<CompletableFuture<?>> window = new ArrayDeque<>();
        try {
            while (!ends) {
                if (window.size() == WINDOW) {
                    window.remove().get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
                }
                long number = sent.getAndIncrement(sender);
                byte[] message = ByteBuffer.allocate(Integer.BYTES + Long.BYTES)
                        .putInt(sender)
                        .putLong(number)
                        .array();
                window.add(number % 2 == 0 ? client.send(message) : client.request(message));
            }
            for (CompletableFuture<?> last : window) {
                last.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
            }
        } catch (Exception failure) {
            violations.add("sender " + sender + ": " + failure);
        }
    }
}
