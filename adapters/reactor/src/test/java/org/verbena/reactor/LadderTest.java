package org.verbena.reactor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.channel.ChannelOption;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.Patience;
import reactor.core.publisher.Mono;
import reactor.netty.DisposableServer;
import reactor.netty.http.client.HttpClient;
import reactor.netty.http.server.HttpServer;

/** Clients that climb, and a server without Verbena. {@link LadderReactorTest} has the suite. */
@Timeout(120)
class LadderTest {
    private RdmaLoopResources loops;
    private DisposableServer usual;

    @BeforeEach
    void open() {
        loops = new RdmaLoopResources("climb", LadderOptions.DEFAULTS, 1, true, CompletionLoopOptions.DEFAULTS);
        usual = HttpServer.create()
                .bindAddress(() -> new InetSocketAddress("127.0.0.1", 0))
                .handle((request, response) -> response.sendString(Mono.just("hello")))
                .bindNow(Patience.LIMIT);
    }

    @AfterEach
    void close() {
        usual.disposeNow(Patience.LIMIT);
        loops.disposeLater(Duration.ZERO, Duration.ofSeconds(10)).block(Patience.LIMIT);
    }

    private String get(HttpClient client) {
        return client.runOn(loops)
                .get()
                .uri("http://127.0.0.1:" + usual.port() + "/")
                .responseContent()
                .aggregate()
                .asString()
                .block(Patience.LIMIT);
    }

    @Test
    void fallsToPlainTcp() {
        AtomicReference<LadderResult> result = new AtomicReference<>();
        assertThat(get(HttpClient.newConnection()
                        .doOnConnected(connection -> result.set(LadderResult.of(connection.channel())))))
                .isEqualTo("hello");
        assertThat(result.get().rung()).isEqualTo("tcp");
    }

    @Test
    void goesNoLowerThanItMay() {
        HttpClient strict = HttpClient.newConnection()
                .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 1000) // a TCP server does not answer soft
                .option(RdmaChannelOption.LADDER, LadderOptions.DEFAULTS.withMinimumRung("soft"));
        assertThat(catchThrowable(() -> get(strict)).getCause()).hasMessageContaining("none below soft is allowed");
    }
}
