package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.Target;
import org.verbena.transport.spi.Patience;

/** Three servers are restarted in turn under load: no request fails. */
public abstract class RollingUpdateSuite extends ApiSuite {
    private static final Duration LONG = Duration.ofMinutes(10);

    /** How many clients send requests, every day. */
    protected int clients() {
        return 20;
    }

    /** And in the full run. */
    protected int manyClients() {
        return 200;
    }

    private RdmaClient client(RdmaServer... servers) {
        List<InetSocketAddress> addresses = new ArrayList<>();
        for (RdmaServer each : servers) {
            addresses.add(each.localAddress());
        }
        RdmaClient client = RdmaClient.builder()
                .group(group)
                .target(Target.of(addresses))
                .backOff(Duration.ofMillis(5), Duration.ofMillis(50))
                .start();
        // Which tries again: a JVM that is new in a slow guest may take longer for its first connection than siw gives.
        Patience.await("it is ready", client.whenReady());
        return client;
    }

    @Test
    void aRollingUpdateFailsNoRequest() {
        rollingUpdate(2, clients());
    }

    @Test
    @Tag("full")
    void aLargeRollingUpdateFailsNoRequest() {
        rollingUpdate(5, manyClients());
    }

    private void rollingUpdate(int rounds, int count) {
        LongAdder answered = new LongAdder();
        AtomicBoolean stop = new AtomicBoolean();
        MessageHandler busy = MessageHandler.ofBytes((exchange, message) -> {
            Thread.sleep(1);
            exchange.reply(message);
        });
        RdmaServer[] servers = new RdmaServer[3];
        for (int i = 0; i < servers.length; i++) {
            servers[i] = serveOnThreads(lastingPort(), busy);
        }
        List<RdmaClient> clients = new ArrayList<>();
        List<CompletableFuture<Void>> running = new ArrayList<>();
        try {
            for (int i = 0; i < count; i++) {
                RdmaClient client = client(servers);
                clients.add(client);
                for (int chain = 0; chain < 2; chain++) {
                    CompletableFuture<Void> ended = new CompletableFuture<>();
                    running.add(ended);
                    goOn(client, answered, stop, ended);
                }
            }
            for (int round = 0; round < rounds; round++) {
                for (int i = 0; i < servers.length; i++) {
                    int port = servers[i].port();
                    long before = answered.sum();
                    assertThat(Patience.await("the shutdown", servers[i].shutdown(LONG)))
                            .isTrue();
                    Patience.until("the others serve all", () -> answered.sum() > before + count);
                    RdmaServer next = serveOnThreads(port, busy);
                    servers[i] = next;
                    Patience.until("all are back", () -> next.connections().size() == count);
                }
            }
        } finally {
            stop.set(true);
        }
        running.forEach(each -> Patience.await("the last request", each));
        assertThat(answered.sum()).isGreaterThan((long) count * rounds * servers.length);
        List<CompletableFuture<Void>> closing = new ArrayList<>();
        clients.forEach(client -> closing.add(client.closeAsync()));
        closing.forEach(each -> Patience.await("a client closing", each));
        for (RdmaServer server : servers) {
            server.close();
        }
    }

    private RdmaServer serveOnThreads(int port, MessageHandler handler) {
        return RdmaServer.builder().group(group).virtualThreads(true).bind(host(), port, handler);
    }

    /** One request after the other, until one fails. */
    private static void goOn(RdmaClient client, LongAdder answered, AtomicBoolean stop, CompletableFuture<Void> ended) {
        client.request(new byte[64]).whenCompleteAsync((reply, failure) -> {
            if (failure != null) {
                ended.completeExceptionally(failure);
                return;
            }
            answered.increment();
            if (stop.get()) {
                ended.complete(null);
            } else {
                goOn(client, answered, stop, ended);
            }
        });
    }
}
