package org.verbena.api.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.Measurement;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.MessageHandler;
import org.verbena.api.Methods;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Method;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.spi.Patience;

@Timeout(240)
class RdmaMetricsTest {
    private final MeterRegistry registry = new SimpleMeterRegistry();

    private double counted(String name) {
        return registry.get(name).tag("provider", "soft").functionCounter().count();
    }

    private double gauged(String name) {
        return registry.get(name).tag("provider", "soft").gauge().value();
    }

    @Test
    void metersFollowTheTraffic() throws Exception {
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 2);
                RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()))) {
            AtomicLong clock = new AtomicLong();
            new RdmaMetrics( // with figures as of each reading
                            group.provider(),
                            () -> clock.addAndGet(Duration.ofMinutes(1).toNanos()),
                            () -> ProviderStatistics.of(group.provider()))
                    .bindTo(registry);
            double before = counted("verbena.messages.sent");
            double completionsBefore = counted("verbena.completions");
            double connectionsBefore = gauged("verbena.connections");
            try (RdmaClient client = RdmaClient.builder()
                    .group(group)
                    .connect("127.0.0.1", server.localAddress().getPort())) {
                for (int i = 0; i < 10; i++) {
                    assertThat(client.request("hello".getBytes(UTF_8)).get()).isEqualTo("hello".getBytes(UTF_8));
                }
                // The last reply's own completion may come a moment after its arrival.
                assertThat(counted("verbena.messages.sent") - before).isBetween(19.0, 20.0);
                assertThat(counted("verbena.completions") - completionsBefore).isGreaterThanOrEqualTo(30);
                assertThat(gauged("verbena.connections") - connectionsBefore).isEqualTo(2);
                assertThat(gauged("verbena.memory.registered")).isPositive();
                assertThat(gauged("verbena.buffers.receive.used")).isPositive();
            }
        }
    }

    private static final Method<String, String> METHOD = Method.of("shop", "order", Codec.TEXT, Codec.TEXT);

    private Timer timer(String name, String method, String outcome) {
        return registry.get(name).tag("method", method).tag("outcome", outcome).timer();
    }

    @Test
    void requestsAreTimedByMethodAndOutcome() throws Exception {
        RequestMetrics requests = new RequestMetrics(registry);
        MessageHandler handler = Methods.NONE.with(METHOD, (exchange, what) -> {
            if (what.isEmpty()) {
                throw new RequestFailure(7, "nothing was ordered");
            }
            return what;
        });
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1);
                RdmaServer server =
                        RdmaServer.builder().group(group).intercept(requests).bind("127.0.0.1", 0, handler);
                RdmaClient client =
                        RdmaClient.builder().group(group).intercept(requests).connect("127.0.0.1", server.port())) {
            Patience.await("a reply", client.call(METHOD, "tea"));
            Patience.await("another", client.call(METHOD, "tea"));
            assertThat(client.call(METHOD, "")
                            .handle((reply, failure) -> failure)
                            .get())
                    .isInstanceOf(RequestFailure.class);
            Method<String, String> madeUp = Method.of("shop", "x", Codec.TEXT, Codec.TEXT);
            assertThat(client.call(madeUp, "")
                            .handle((reply, failure) -> failure)
                            .get())
                    .isInstanceOf(RequestException.Refused.class);
            assertThat(timer(RequestMetrics.CLIENT, "shop/order", "ok").count()).isEqualTo(2);
            assertThat(timer(RequestMetrics.CLIENT, "shop/order", "RequestFailure")
                            .count())
                    .isEqualTo(1);
            assertThat(timer(RequestMetrics.CLIENT, "shop/x", "Refused").count())
                    .isEqualTo(1);
            Patience.until(
                    "the server's",
                    () -> registry.find(RequestMetrics.SERVER).timers().stream()
                                    .mapToLong(Timer::count)
                                    .sum()
                            == 4);
            assertThat(timer(RequestMetrics.SERVER, "shop/order", "ok").count()).isEqualTo(2);
            assertThat(timer(RequestMetrics.SERVER, "request", "Refused").count())
                    .isEqualTo(1);
        }
    }

    @Test
    void aScrapeTakesOneSnapshot() {
        AtomicLong nanos = new AtomicLong();
        AtomicInteger taken = new AtomicInteger();
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1)) {
            new RdmaMetrics(group.provider(), nanos::get, () -> {
                        taken.incrementAndGet();
                        return ProviderStatistics.of(group.provider());
                    })
                    .bindTo(registry);
            for (int scrape = 1; scrape <= 3; scrape++) {
                for (Meter meter : registry.getMeters()) {
                    meter.measure().forEach(Measurement::getValue);
                }
                assertThat(taken).hasValue(scrape);
                nanos.addAndGet(Duration.ofSeconds(1).toNanos());
            }
        }
    }

    @Test
    void everyMeterIsDocumented() throws Exception {
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1)) {
            new RdmaMetrics(group.provider()).bindTo(registry);
            try (RdmaServer server = RdmaServer.builder()
                            .group(group)
                            .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
                    RdmaClient client = RdmaClient.builder()
                            .group(group)
                            .intercept(new RequestMetrics(registry))
                            .connect("127.0.0.1", server.port())) {
                new ClientMetrics(client).bindTo(registry);
                client.request(new byte[1]).get();
            }
        }
        String document = Files.readString(Path.of("..", "docs", "observability.md"));
        assertThat(registry.getMeters()).hasSizeGreaterThan(20);
        for (Meter meter : registry.getMeters()) {
            assertThat(document).contains("`" + meter.getId().getName() + "`");
        }
    }
}
