package org.verbena.api.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.Measurement;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;

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
    void everyMeterIsDocumented() throws IOException {
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1)) {
            new RdmaMetrics(group.provider()).bindTo(registry);
        }
        String document = Files.readString(Path.of("..", "docs", "observability.md"));
        assertThat(registry.getMeters()).hasSizeGreaterThan(20);
        for (Meter meter : registry.getMeters()) {
            assertThat(document).contains("`" + meter.getId().getName() + "`");
        }
    }
}
