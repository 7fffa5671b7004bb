package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.Patience;

/** The loops of clients that have no group. */
@Timeout(120)
class SharedLoopsTest {
    private static final MessageHandler ECHO = (exchange, message) -> exchange.reply(message.retain());

    @Test
    void manyClientsHaveFewLoopsAndTheLastEndsThem() {
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1);
                RdmaServer server = RdmaServer.builder().group(group).bind("127.0.0.1", 0, ECHO)) {
            List<RdmaClient> clients = new ArrayList<>();
            Set<Object> loops = new HashSet<>();
            for (int i = 0; i < 20; i++) {
                RdmaClient client = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port());
                clients.add(client);
                loops.add(client.channel().eventLoop());
                assertThat(Patience.await("a reply", client.request(new byte[3])))
                        .hasSize(3);
            }
            assertThat(loops).hasSize(SharedLoops.THREADS);
            RdmaClient last = clients.removeLast();
            clients.forEach(RdmaClient::close);
            assertThat(last.channel().eventLoop().isShuttingDown()).isFalse();
            assertThat(Patience.await("a reply", last.request(new byte[3]))).hasSize(3);
            last.close();
            assertThat(last.channel().eventLoop().isTerminated()).isTrue();
            try (RdmaClient next = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port())) {
                assertThat(loops).doesNotContain(next.channel().eventLoop());
            }
        }
    }

    @Test
    void otherOptionsAreOtherLoops() {
        try (RdmaServer server = RdmaServer.builder()
                        .provider("soft")
                        .threadsPerProvider(1)
                        .bind("127.0.0.1", 0, ECHO);
                RdmaClient one = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port());
                RdmaClient other = RdmaClient.builder()
                        .provider("soft")
                        .loopOptions(CompletionLoopOptions.DEFAULTS.withTransferBudgetBytes(1 << 20))
                        .connect("127.0.0.1", server.port())) {
            assertThat(one.channel().eventLoop().parent())
                    .isNotSameAs(other.channel().eventLoop().parent());
        }
    }

    @Test
    void clientsComeAndGoOnAllThreadsAtOnce() {
        try (RdmaServer server =
                RdmaServer.builder().provider("soft").threadsPerProvider(2).bind("127.0.0.1", 0, ECHO)) {
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int thread = 0; thread < 6; thread++) {
                CompletableFuture<Void> done = new CompletableFuture<>();
                all.add(done);
                Thread.ofVirtual().start(() -> {
                    try {
                        for (int i = 0; i < 30; i++) {
                            try (RdmaClient client =
                                    RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port())) {
                                client.request(new byte[8]).join();
                            }
                        }
                        done.complete(null);
                    } catch (Throwable failure) {
                        done.completeExceptionally(failure);
                    }
                });
            }
            all.forEach(each -> Patience.await("a thread", each));
        }
    }
}
