package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.Target;
import org.verbena.transport.spi.Patience;

/** Three servers are restarted in turn under load: no request fails. */
public abstract class RollingUpdateSuite extends ApiSuite {
    private static final Duration LONG = Duration.ofMinutes(10);

    /** How long to measure what the machine bears, and before that, to let it compile what runs. */
    private static final int SECONDS_OF_FULL_LOAD = 2;

    /** How many clients send requests, every day. */
    protected int clients() {
        return 20;
    }

    /** And in the full run: 200, or {@code -Dverbena.rolling.clients=}. */
    protected int manyClients() {
        return Integer.getInteger("verbena.rolling.clients", 200);
    }

    /** With the default back-off, or one that is back at once. */
    private RdmaClient client(boolean defaults, RdmaServer... servers) {
        List<InetSocketAddress> addresses = new ArrayList<>();
        for (RdmaServer each : servers) {
            addresses.add(each.localAddress());
        }
        RdmaClient.Builder builder = RdmaClient.builder().group(group).target(Target.of(addresses));
        if (!defaults) {
            builder.backOff(Duration.ofMillis(5), Duration.ofMillis(50));
        }
        RdmaClient client = builder.start();
        // Which tries again: a JVM that is new in a slow guest may take longer for its first connection than siw gives.
        Patience.await("it is ready", client.whenReady());
        return client;
    }

    /** As many requests as there can be. */
    @Test
    void aRollingUpdateFailsNoRequest() {
        rollingUpdate(2, clients(), false);
    }

    /**
     * Half as many, so that what they take while a server leaves can be compared; that is printed, not asserted. A
     * round more comes first, until what leaves and returns is compiled.
     */
    @Test
    @Tag("full")
    void aLargeRollingUpdateFailsNoRequest() {
        rollingUpdate(1 + Integer.getInteger("verbena.rolling.rounds", 5), manyClients(), true);
    }

    private void rollingUpdate(int rounds, int count, boolean atHalfTheLoad) {
        MessageHandler busy = MessageHandler.ofBytes((exchange, message) ->
                exchange.channel().eventLoop().schedule(() -> exchange.reply(message), 1, TimeUnit.MILLISECONDS));
        RdmaServer[] servers = new RdmaServer[3];
        for (int i = 0; i < servers.length; i++) {
            servers[i] = serveOnThreads(lastingPort(), busy);
        }
        List<RdmaClient> clients = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            clients.add(client(atHalfTheLoad, servers));
        }
        RequestLoad load = new RequestLoad(clients);
        long rate = 0;
        try {
            rate = atHalfTheLoad ? load.halve(SECONDS_OF_FULL_LOAD) : 0;
            for (int round = 0; round < rounds; round++) {
                boolean first = atHalfTheLoad && round == 0;
                for (int i = 0; i < servers.length; i++) {
                    int port = servers[i].port();
                    load.enter(RequestLoad.Phase.UNMEASURED);
                    load.awaitAnswers("what was late is answered", 2 * rate);
                    load.enter(RequestLoad.Phase.QUIET);
                    load.awaitAnswers("a second without a change", Math.max(count, rate));
                    load.enter(first ? RequestLoad.Phase.FIRST : RequestLoad.Phase.LEAVING);
                    assertThat(Patience.await("the shutdown", servers[i].shutdown(LONG)))
                            .isTrue();
                    load.awaitAnswers("the others serve all", count);
                    load.enter(first ? RequestLoad.Phase.FIRST : RequestLoad.Phase.RETURNING);
                    RdmaServer next = serveOnThreads(port, busy);
                    servers[i] = next;
                    Patience.until("all are back", () -> next.connections().size() == count);
                }
            }
        } finally {
            load.end();
        }
        assertThat(load.answered()).isGreaterThan((long) count * rounds * servers.length);
        System.out.println("rolling update on " + provider() + " at " + host() + ", " + count + " clients, "
                + (rate == 0 ? "all the load" : rate + " requests a second") + ", ms: " + load.describe());
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
}
