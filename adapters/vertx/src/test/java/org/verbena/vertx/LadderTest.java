package org.verbena.vertx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.vertx.core.Vertx;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientResponse;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderStatistics;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.Patience;

/** Clients that climb, and a server without Verbena. {@link LadderVertxTest} has the suite. */
@Timeout(120)
class LadderTest {
    private static Vertx climbing(LadderOptions options) {
        return Vertx.builder()
                .withTransport(new RdmaTransport(options, CompletionLoopOptions.DEFAULTS))
                .build();
    }

    private static String get(Vertx vertx, int port, int connectMillis) {
        HttpClient client = vertx.createHttpClient(new HttpClientOptions().setConnectTimeout(connectMillis));
        try {
            return Patience.await(
                            "the answer",
                            client.request(HttpMethod.GET, port, "127.0.0.1", "/")
                                    .compose(request -> request.send().compose(HttpClientResponse::body))
                                    .toCompletionStage()
                                    .toCompletableFuture())
                    .toString();
        } finally {
            client.close(); // which Vert.x does for clients that nobody refers to
        }
    }

    @Test
    void fallsToPlainTcpIfItMay() {
        Vertx usual = Vertx.vertx();
        Vertx climbing = climbing(LadderOptions.DEFAULTS);
        Vertx strict = climbing(LadderOptions.DEFAULTS.withMinimumRung("soft"));
        try {
            HttpServer server = usual.createHttpServer()
                    .requestHandler(request -> request.response().end("hello"));
            int port = Patience.await(
                            "the server",
                            server.listen(0, "127.0.0.1").toCompletionStage().toCompletableFuture())
                    .actualPort();
            long before = LadderStatistics.of("tcp").used();
            assertThat(get(climbing, port, (int) Patience.LIMIT.toMillis())).isEqualTo("hello");
            assertThat(LadderStatistics.of("tcp").used()).isEqualTo(before + 1);
            // A server of HTTP may wait for the rest of what it takes for a request.
            assertThat(catchThrowable(() -> get(strict, port, 500)).getCause())
                    .hasMessageContaining("none below soft is allowed");
        } finally {
            for (Vertx each : new Vertx[] {climbing, strict, usual}) {
                Patience.await("the end", each.close().toCompletionStage().toCompletableFuture());
            }
        }
    }
}
