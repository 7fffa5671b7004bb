package org.verbena.api.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.binder.BaseUnits;
import io.micrometer.core.instrument.binder.MeterBinder;
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
     * How long a snapshot serves: longer than a scrape, whose meters are read one by one, and shorter than anyone waits
     * between two.
     */
    private static final long FRESH_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

    /** Figures and when they were taken. */
    private record Taken(ProviderStatistics figures, long nanos) {}

    private final RdmaProvider provider;
    private final LongSupplier nanoTime;
    private final Supplier<ProviderStatistics> source;
    private final AtomicReference<@Nullable Taken> last = new AtomicReference<>();

    /**
     * Makes one for a provider.
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
        gauge(registry, "verbena.connections", "connections now", null, ProviderStatistics::openConnections);
        counter(registry, "verbena.connections.begun", "connections so far", null, ProviderStatistics::connections);
        counter(
                registry,
                "verbena.connections.lost",
                "connections that did not come up, or were lost",
                null,
                ProviderStatistics::lostConnections);
        gauge(
                registry,
                "verbena.connections.plain",
                "plain TCP connections of servers now",
                null,
                ProviderStatistics::openPlainConnections);
        counter(
                registry,
                "verbena.connections.plain.begun",
                "plain TCP connections of servers so far",
                null,
                ProviderStatistics::plainConnections);
        counter(
                registry,
                "verbena.listens.failed",
                "times that a server could not listen with this provider",
                null,
                ProviderStatistics::failedListens);
        counter(
                registry,
                "verbena.messages.sent",
                "messages sent",
                null,
                s -> s.messages().messagesSent());
        counter(
                registry,
                "verbena.messages.received",
                "messages delivered",
                null,
                s -> s.messages().messagesReceived());
        counter(
                registry,
                "verbena.bytes.sent",
                "bytes of messages sent",
                BaseUnits.BYTES,
                s -> s.messages().bytesSent());
        counter(
                registry,
                "verbena.bytes.received",
                "bytes of messages delivered",
                BaseUnits.BYTES,
                s -> s.messages().bytesReceived());
        counter(
                registry,
                "verbena.bytes.copied",
                "bytes of messages copied to be sent",
                BaseUnits.BYTES,
                s -> s.messages().copiedBytes());
        counter(
                registry,
                "verbena.registrations",
                "messages registered to be sent",
                null,
                s -> s.messages().registrations());
        counter(
                registry,
                "verbena.rendezvous.sent",
                "messages read by peers",
                null,
                s -> s.messages().rendezvousSent());
        counter(
                registry,
                "verbena.rendezvous.received",
                "messages read from peers",
                null,
                s -> s.messages().rendezvousReceived());
        counter(
                registry,
                "verbena.onesided",
                "reads, writes and atomics completed",
                null,
                s -> s.messages().oneSidedOperations());
        counter(
                registry,
                "verbena.stalls.credit",
                "waits for peers' credits",
                null,
                s -> s.messages().creditStalls());
        TimeGauge.builder(
                        "verbena.stalls.credit.time",
                        provider,
                        TimeUnit.NANOSECONDS,
                        of(s -> s.messages().creditStallNanos()))
                .description("total time of waits for peers' credits")
                .tag(TAG, provider.name())
                .register(registry);
        counter(
                registry,
                "verbena.stalls.slot",
                "waits for the send queue or the read depth",
                null,
                s -> s.messages().slotStalls());
        counter(
                registry,
                "verbena.stalls.memory",
                "waits for registered memory",
                null,
                s -> s.messages().memoryStalls());
        counter(
                registry,
                "verbena.stalls.transfer",
                "waits of long reads and writes for their turn among connections",
                null,
                s -> s.messages().transferStalls());
        counter(
                registry,
                "verbena.receives.low",
                "times that receives ran low",
                null,
                s -> s.messages().receiveQueueLow());
        gauge(
                registry,
                "verbena.credits",
                "messages that peers would accept now",
                null,
                s -> s.messages().credits());
        gauge(
                registry,
                "verbena.credits.granted",
                "messages that peers may send now",
                null,
                s -> s.messages().creditsGranted());
        gauge(
                registry,
                "verbena.bytes.queued",
                "bytes of messages not yet completed",
                BaseUnits.BYTES,
                s -> s.messages().queuedBytes());
        counter(
                registry,
                "verbena.requests.expired",
                "requests dropped because their time was over",
                null,
                ProviderStatistics::expiredRequests);
        counter(
                registry,
                "verbena.requests.overloaded",
                "requests refused because the server was overloaded",
                null,
                ProviderStatistics::overloadedRequests);
        counter(
                registry,
                "verbena.requests.abandoned",
                "requests dropped because their connection was gone",
                null,
                ProviderStatistics::abandonedRequests);
        counter(
                registry,
                "verbena.polls",
                "polls of completion queues",
                null,
                s -> s.loops().polls());
        counter(
                registry,
                "verbena.polls.empty",
                "polls that found no completion",
                null,
                s -> s.loops().emptyPolls());
        counter(
                registry,
                "verbena.completions",
                "completions",
                null,
                s -> s.loops().completions());
        gauge(
                registry,
                "verbena.memory.registered",
                "registered memory",
                BaseUnits.BYTES,
                s -> s.loops().registeredBytes());
        gauge(
                registry,
                "verbena.buffers.send.used",
                "memory of send buffers in use",
                BaseUnits.BYTES,
                s -> s.sendBuffers().usedBytes());
        gauge(
                registry,
                "verbena.buffers.receive.used",
                "memory of receive buffers in use",
                BaseUnits.BYTES,
                s -> s.receiveBuffers().usedBytes());
        counter(
                registry,
                "verbena.buffers.refused",
                "buffer allocations that the pools refused",
                null,
                s -> s.sendBuffers().refusals() + s.receiveBuffers().refusals());
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

    /** Meters hold their object weakly, and providers live as long as the process. */
    private ToDoubleFunction<RdmaProvider> of(ToLongFunction<ProviderStatistics> figure) {
        return provider -> figure.applyAsLong(figures());
    }

    private void counter(
            MeterRegistry registry,
            String name,
            String description,
            @Nullable String unit,
            ToLongFunction<ProviderStatistics> figure) {
        FunctionCounter.builder(name, provider, of(figure))
                .description(description)
                .baseUnit(unit)
                .tag(TAG, provider.name())
                .register(registry);
    }

    private void gauge(
            MeterRegistry registry,
            String name,
            String description,
            @Nullable String unit,
            ToLongFunction<ProviderStatistics> figure) {
        Gauge.builder(name, provider, of(figure))
                .description(description)
                .baseUnit(unit)
                .tag(TAG, provider.name())
                .register(registry);
    }
}
