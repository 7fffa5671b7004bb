package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.client.Target;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/** One of three server processes is killed under load, and comes back. */
public abstract class KilledServersSuite extends ApiSuite {
    private static final int SERVERS = 3;

    /** Requests that the server certainly has when it is killed, of each kind of client. */
    private static final int HELD = 5;

    private static final Duration LONG = Duration.ofMinutes(10);

    private final AtomicLong numbers = new AtomicLong();
    private final LongAdder answered = new LongAdder();
    private volatile boolean isEnding;

    /** How many clients send requests, and as many that may be handled twice. */
    protected int clients() {
        return 2;
    }

    /** How often one is killed in the full run. */
    protected int manyKills() {
        return 2 * SERVERS;
    }

    /** For a request, so that some are under way at any time, and a machine that is slow has time for a new server. */
    private Duration work() {
        return brief(1);
    }

    private RdmaClient client(boolean idempotent, List<InetSocketAddress> servers) {
        RdmaClient client = RdmaClient.builder()
                .group(group)
                .target(Target.of(servers))
                .idempotent(idempotent)
                .requestTimeout(LONG)
                .backOff(brief(5), brief(100))
                .start();
        // Which tries again: servers that are new in a slow guest may take longer than siw gives a connection.
        Patience.await("it is ready", client.whenReady());
        return client;
    }

    private static byte[] request(long number, int heldBy) {
        return ByteBuffer.allocate(KilledServer.REQUEST_BYTES)
                .putLong(number)
                .putInt(heldBy)
                .array();
    }

    /** Sends one request after the other, goes on when one fails, and ends when the load does. */
    private final class Sender {
        private final RdmaClient client;
        private final int maxFailures;
        final Map<Long, Throwable> failures = new ConcurrentHashMap<>();
        final Set<Long> answers = ConcurrentHashMap.newKeySet();
        final CompletableFuture<Void> end = new CompletableFuture<>();

        Sender(RdmaClient client, int maxFailures) {
            this.client = client;
            this.maxFailures = maxFailures;
        }

        void next() {
            long number = numbers.incrementAndGet();
            byte[] message = request(number, 0);
            client.request(message).whenCompleteAsync((reply, failure) -> {
                if (failure != null) {
                    failures.put(number, failure);
                } else if (ByteBuffer.wrap(reply).getLong() == number) {
                    answers.add(number);
                    answered.increment();
                } else {
                    failures.put(number, new AssertionError("another request's reply"));
                }
                // One that is lost twice in a kill has not gone elsewhere.
                if (isEnding || failures.size() > maxFailures) {
                    end.complete(null);
                } else {
                    next();
                }
            });
        }
    }

    @Test
    void onlyWhatIsUnderWayFails(@TempDir Path folder) throws Exception {
        kill(1, folder);
    }

    @Test
    @Tag("full")
    void onlyWhatIsUnderWayFailsEachTime(@TempDir Path folder) throws Exception {
        kill(manyKills(), folder);
    }

    private void kill(int kills, Path folder) throws Exception {
        KilledServer[] servers = new KilledServer[SERVERS];
        List<KilledServer> started = new ArrayList<>();
        List<RdmaClient> clients = new ArrayList<>();
        try {
            List<InetSocketAddress> addresses = new ArrayList<>();
            for (int i = 0; i < SERVERS; i++) {
                servers[i] = start(lastingPort(), folder, started);
                addresses.add(new InetSocketAddress(host(), servers[i].port));
            }
            List<Sender> once = new ArrayList<>();
            List<Sender> again = new ArrayList<>();
            for (int i = 0; i < 2 * clients(); i++) {
                boolean repeats = i % 2 == 1;
                RdmaClient client = client(repeats, addresses);
                clients.add(client);
                for (int j = 0; j < 2; j++) {
                    (repeats ? again : once).add(new Sender(client, repeats ? 0 : kills));
                }
            }
            once.forEach(Sender::next);
            again.forEach(Sender::next);
            Map<Long, Throwable> lost = new HashMap<>();
            for (int kill = 0; kill < kills; kill++) {
                KilledServer victim = servers[kill % SERVERS];
                Patience.until("all have requests", () -> started.stream().allMatch(KilledServer::isUsed));
                lost.putAll(killWithRequests(victim, clients.get(0), clients.get(1)));
                long before = answered.sum();
                Patience.until("the others serve", () -> answered.sum() > before + once.size() + again.size());
                KilledServer next = start(victim.port, folder, started);
                servers[kill % SERVERS] = next;
                Patience.until("it is used again", next::isUsed);
            }
            isEnding = true;
            for (List<Sender> each : List.of(once, again)) {
                each.forEach(sender -> Patience.await("the last request", sender.end));
            }
            assertThat(again).allSatisfy(sender -> assertThat(sender.failures).isEmpty());
            assertThat(once).allSatisfy(sender -> assertThat(sender.failures).hasSizeLessThanOrEqualTo(kills));
            once.forEach(sender -> lost.putAll(sender.failures));
            Set<Long> answers = new HashSet<>();
            once.forEach(sender -> answers.addAll(sender.answers));
            assertBegun(started, lost, answers);
        } finally {
            isEnding = true;
            List<CompletableFuture<Void>> closing =
                    clients.stream().map(RdmaClient::closeAsync).toList();
            closing.forEach(each -> Patience.await("a client closing", each));
            for (KilledServer each : started) {
                each.kill();
            }
        }
    }

    private KilledServer start(int port, Path folder, List<KilledServer> started) throws IOException {
        KilledServer server =
                KilledServer.start(provider(), host(), port, folder.resolve("begun-" + started.size()), work());
        started.add(server);
        server.awaitReady();
        return server;
    }

    /** Returns what failed of the requests that it had: those that may not be handled twice. */
    private Map<Long, Throwable> killWithRequests(KilledServer victim, RdmaClient once, RdmaClient again)
            throws InterruptedException {
        Map<Long, CompletableFuture<byte[]>> failing = hold(victim, once);
        Map<Long, CompletableFuture<byte[]>> moving = hold(victim, again);
        victim.kill();
        Map<Long, Throwable> lost = new HashMap<>();
        failing.forEach((number, request) -> {
            Throwable cause = failure("a request of the killed server", request);
            assertThat(cause)
                    .isInstanceOfSatisfying(
                            ConnectionException.class,
                            loss -> assertThat(loss.mayHaveBegun()).isTrue());
            lost.put(number, cause);
        });
        moving.forEach(
                (number, request) -> assertThat(ByteBuffer.wrap(Patience.await("a reply of another server", request))
                                .getLong())
                        .isEqualTo(number));
        return lost;
    }

    /**
     * Requests that this server has and does not answer. Many at a time: the server that has fewer of two gets the
     * next.
     */
    private Map<Long, CompletableFuture<byte[]>> hold(KilledServer server, RdmaClient client) {
        Map<Long, CompletableFuture<byte[]>> held = new HashMap<>();
        Patience.until("it has some", () -> {
            Map<Long, CompletableFuture<byte[]>> requests = new HashMap<>();
            for (int i = 0; i < 4 * HELD; i++) {
                long number = numbers.incrementAndGet();
                requests.put(number, client.request(request(number, server.port)));
            }
            requests.forEach((number, request) -> Patience.until(
                    "it is answered or held",
                    () -> request.isDone() || server.begun().containsKey(number)));
            requests.forEach((number, request) -> {
                if (request.isDone()) {
                    Patience.await("a reply of another server", request);
                } else {
                    held.put(number, request);
                }
            });
            return held.size() >= HELD;
        });
        return held;
    }

    /** What the servers have noted is what the clients were told. */
    private static void assertBegun(List<KilledServer> servers, Map<Long, Throwable> lost, Set<Long> answers) {
        Map<Long, Integer> begun = new HashMap<>();
        servers.forEach(each -> each.begun().forEach((number, count) -> begun.merge(number, count, Integer::sum)));
        lost.forEach((number, cause) -> {
            assertThat(begun.getOrDefault(number, 0)).as("begun at most once").isLessThanOrEqualTo(1);
            assertThat(cause).isInstanceOfSatisfying(ConnectionException.class, loss -> {
                if (begun.containsKey(number)) {
                    assertThat(loss.mayHaveBegun()).as("request %d", number).isTrue();
                }
            });
        });
        assertThat(answers)
                .allSatisfy(number -> assertThat(begun).as("handled once").containsEntry(number, 1));
    }
}
