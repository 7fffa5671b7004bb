package org.verbena.rsocket;

import static org.assertj.core.api.Assertions.assertThat;

import io.rsocket.DuplexConnection;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RefusingThreads;
import reactor.core.publisher.Mono;

/** The thread of a loop cannot be started twice: for the channel, and for whatever waits for it. */
@Timeout(120)
class RefusedThreadsTest {
    private static RdmaEventLoopGroup refusing() {
        return new RdmaEventLoopGroup(
                ProviderChoice.choose("soft", null), 1, new RefusingThreads(0, 2), CompletionLoopOptions.DEFAULTS);
    }

    @Test
    void aConnectionFailsAndTheNextOneIsMade() {
        try (RdmaEventLoopGroup servers = new RdmaEventLoopGroup("soft", 1);
                RdmaEventLoopGroup clients = refusing()) {
            RdmaServerTransport.Server server = RdmaServerTransport.create(
                            new InetSocketAddress("127.0.0.1", 0), servers)
                    .start(connection -> Mono.empty())
                    .block(Patience.LIMIT);
            RdmaClientTransport client = RdmaClientTransport.create(server.address(), clients);
            CompletableFuture<DuplexConnection> refused = client.connect().toFuture();
            Patience.until("it has failed", refused::isDone);
            assertThat(refused).isCompletedExceptionally();
            Patience.await("a connection", client.connect().toFuture()).dispose();
            server.dispose();
        }
    }

    @Test
    void aServerFailsAndTheNextOneListens() {
        try (RdmaEventLoopGroup loops = refusing()) {
            RdmaServerTransport transport = RdmaServerTransport.create(new InetSocketAddress("127.0.0.1", 0), loops);
            CompletableFuture<RdmaServerTransport.Server> refused =
                    transport.start(connection -> Mono.empty()).toFuture();
            Patience.until("it has failed", refused::isDone);
            assertThat(refused).isCompletedExceptionally();
            Patience.await(
                            "a server",
                            transport.start(connection -> Mono.empty()).toFuture())
                    .dispose();
        }
    }
}
