package org.verbena.api.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.binder.BaseUnits;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import org.verbena.api.ProviderStatistics;
import org.verbena.transport.spi.RdmaProvider;

/**
 * The figures of a provider as Micrometer's meters, tagged {@code provider}. {@code docs/observability.md} lists them.
 *
 * <pre>{@code
 * new RdmaMetrics(group.provider()).bindTo(registry);
 * }</pre>
 */
public final class RdmaMetrics implements MeterBinder {
    private static final String TAG = "provider";

    /**
     * How long a snapshot is used: longer than a scrape, which reads the meters one by one, and shorter than the time
     * between two scrapes.
     */
    private static final long FRESH_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

    /** What kind of meter a figure is, and its unit. */
    private enum Kind {
        NOW(null),
        BYTES_NOW(BaseUnits.BYTES),
        SO_FAR(null),
        BYTES_SO_FAR(BaseUnits.BYTES),
        NANOS(null);

        private final @Nullable String unit;

        Kind(@Nullable String unit) {
            this.unit = unit;
        }
    }

    /** A meter. */
    private record Row(String name, String description, Kind kind, ToLongFunction<ProviderStatistics> figure) {}

    private static final List<Row> ROWS = List.of(
            new Row("verbena.connections", "connections now", Kind.NOW, ProviderStatistics::openConnections),
            new Row("verbena.connections.begun", "connections so far", Kind.SO_FAR, ProviderStatistics::connections),
            new Row(
                    "verbena.connections.lost",
                    "connections that could not be established, or were lost",
                    Kind.SO_FAR,
                    ProviderStatistics::lostConnections),
            new Row(
                    "verbena.connections.plain",
                    "plain TCP connections of servers now",
                    Kind.NOW,
                    ProviderStatistics::openPlainConnections),
            new Row(
                    "verbena.connections.plain.begun",
                    "plain TCP connections of servers so far",
                    Kind.SO_FAR,
                    ProviderStatistics::plainConnections),
            new Row(
                    "verbena.listens.failed",
                    "times that a server could not listen with this provider",
                    Kind.SO_FAR,
                    ProviderStatistics::failedListens),
            new Row(
                    "verbena.messages.sent",
                    "messages sent",
                    Kind.SO_FAR,
                    s -> s.messages().messagesSent()),
            new Row(
                    "verbena.messages.received",
                    "messages delivered",
                    Kind.SO_FAR,
                    s -> s.messages().messagesReceived()),
            new Row(
                    "verbena.bytes.sent",
                    "bytes of messages sent",
                    Kind.BYTES_SO_FAR,
                    s -> s.messages().bytesSent()),
            new Row(
                    "verbena.bytes.received",
                    "bytes of messages delivered",
                    Kind.BYTES_SO_FAR,
                    s -> s.messages().bytesReceived()),
            new Row(
                    "verbena.bytes.copied",
                    "bytes of messages copied to be sent",
                    Kind.BYTES_SO_FAR,
                    s -> s.messages().copiedBytes()),
            new Row(
                    "verbena.registrations",
                    "messages registered to be sent",
                    Kind.SO_FAR,
                    s -> s.messages().registrations()),
            new Row(
                    "verbena.rendezvous.sent",
                    "messages read by peers",
                    Kind.SO_FAR,
                    s -> s.messages().rendezvousSent()),
            new Row(
                    "verbena.rendezvous.received",
                    "messages read from peers",
                    Kind.SO_FAR,
                    s -> s.messages().rendezvousReceived()),
            new Row(
                    "verbena.onesided",
                    "reads, writes and atomics completed",
                    Kind.SO_FAR,
                    s -> s.messages().oneSidedOperations()),
            new Row(
                    "verbena.stalls.credit",
                    "waits for peers' credits",
                    Kind.SO_FAR,
                    s -> s.messages().creditStalls()),
            new Row(
                    "verbena.stalls.credit.time",
                    "total time of waits for peers' credits",
                    Kind.NANOS,
                    s -> s.messages().creditStallNanos()),
            new Row(
                    "verbena.stalls.slot",
                    "waits for the send queue or the read depth",
                    Kind.SO_FAR,
                    s -> s.messages().slotStalls()),
            new Row(
                    "verbena.stalls.memory",
                    "waits for registered memory",
                    Kind.SO_FAR,
                    s -> s.messages().memoryStalls()),
            new Row(
                    "verbena.stalls.transfer",
                    "waits of long reads and writes for their turn among connections",
                    Kind.SO_FAR,
                    s -> s.messages().transferStalls()),
            new Row(
                    "verbena.receives.low",
                    "times that receives ran low",
                    Kind.SO_FAR,
                    s -> s.messages().receiveQueueLow()),
            new Row(
                    "verbena.credits",
                    "messages that peers would accept now",
                    Kind.NOW,
                    s -> s.messages().credits()),
            new Row(
                    "verbena.credits.granted",
                    "messages that peers may send now",
                    Kind.NOW,
                    s -> s.messages().creditsGranted()),
            new Row(
                    "verbena.bytes.queued",
                    "bytes of messages not yet completed",
                    Kind.BYTES_NOW,
                    s -> s.messages().queuedBytes()),
            new Row(
                    "verbena.requests.expired",
                    "requests dropped because their time was over",
                    Kind.SO_FAR,
                    ProviderStatistics::expiredRequests),
            new Row(
                    "verbena.requests.overloaded",
                    "requests refused because the server was overloaded",
                    Kind.SO_FAR,
                    ProviderStatistics::overloadedRequests),
            new Row(
                    "verbena.requests.abandoned",
                    "requests dropped because they were cancelled or their connection was gone",
                    Kind.SO_FAR,
                    ProviderStatistics::abandonedRequests),
            new Row(
                    "verbena.polls",
                    "polls of completion queues",
                    Kind.SO_FAR,
                    s -> s.loops().polls()),
            new Row(
                    "verbena.polls.empty",
                    "polls that found no completion",
                    Kind.SO_FAR,
                    s -> s.loops().emptyPolls()),
            new Row(
                    "verbena.completions",
                    "completions",
                    Kind.SO_FAR,
                    s -> s.loops().completions()),
            new Row(
                    "verbena.memory.registered",
                    "registered memory",
                    Kind.BYTES_NOW,
                    s -> s.loops().registeredBytes()),
            new Row(
                    "verbena.buffers.send.used",
                    "memory of send buffers in use",
                    Kind.BYTES_NOW,
                    s -> s.sendBuffers().usedBytes()),
            new Row(
                    "verbena.buffers.receive.used",
                    "memory of receive buffers in use",
                    Kind.BYTES_NOW,
                    s -> s.receiveBuffers().usedBytes()),
            new Row(
                    "verbena.buffers.refused",
                    "buffer allocations that the pools refused",
                    Kind.SO_FAR,
                    s -> s.sendBuffers().refusals() + s.receiveBuffers().refusals()));

    /** Figures and when they were taken. */
    private record Taken(ProviderStatistics figures, long nanos) {}

    private final RdmaProvider provider;
    private final LongSupplier nanoTime;
    private final Supplier<ProviderStatistics> source;
    private final AtomicReference<@Nullable Taken> last = new AtomicReference<>();

    /**
     * Creates meters for a provider.
     *
     * @param provider of {@link org.verbena.api.RdmaEventLoopGroup#provider()}; it lives as long as the process
     */
    public RdmaMetrics(RdmaProvider provider) {
        this(provider, System::nanoTime, () -> ProviderStatistics.of(provider));
    }

    /** With another clock and other figures. */
    RdmaMetrics(RdmaProvider provider, LongSupplier nanoTime, Supplier<ProviderStatistics> source) {
        this.provider = provider;
        this.nanoTime = nanoTime;
        this.source = source;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        for (Row row : ROWS) {
            // Meters hold their object weakly, and providers live as long as the process.
            ToDoubleFunction<RdmaProvider> figure = any -> row.figure.applyAsLong(figures());
            switch (row.kind) {
                case NOW, BYTES_NOW ->
                    Gauge.builder(row.name, provider, figure)
                            .description(row.description)
                            .baseUnit(row.kind.unit)
                            .tag(TAG, provider.name())
                            .register(registry);
                case SO_FAR, BYTES_SO_FAR ->
                    FunctionCounter.builder(row.name, provider, figure)
                            .description(row.description)
                            .baseUnit(row.kind.unit)
                            .tag(TAG, provider.name())
                            .register(registry);
                case NANOS ->
                    TimeGauge.builder(row.name, provider, TimeUnit.NANOSECONDS, figure)
                            .description(row.description)
                            .tag(TAG, provider.name())
                            .register(registry);
            }
        }
    }

    /** One snapshot for all meters of a scrape: it sums up all connections. */
    private ProviderStatistics figures() {
        long now = nanoTime.getAsLong();
        Taken taken = last.get();
        if (taken == null || now - taken.nanos >= FRESH_NANOS) {
            taken = new Taken(source.get(), now);
            last.set(taken);
        }
        return taken.figures;
    }
}
