package org.verbena.api.metrics;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
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

    private static final List<Figure<ProviderStatistics>> ROWS = Figure.table(ProviderStatistics.class, """
            verbena.connections | NOW | openConnections | connections now
            verbena.connections.begun | SO_FAR | connections | connections so far
            verbena.connections.lost | SO_FAR | lostConnections | connections that did not come up, or were lost
            verbena.connections.plain | NOW | openPlainConnections | plain TCP connections of servers now
            verbena.connections.plain.begun | SO_FAR | plainConnections | plain TCP connections of servers so far
            verbena.listens.failed | SO_FAR | failedListens | times that a server could not listen with this provider
            verbena.messages.sent | SO_FAR | messages.messagesSent | messages sent
            verbena.messages.received | SO_FAR | messages.messagesReceived | messages delivered
            verbena.bytes.sent | BYTES_SO_FAR | messages.bytesSent | bytes of messages sent
            verbena.bytes.received | BYTES_SO_FAR | messages.bytesReceived | bytes of messages delivered
            verbena.bytes.copied | BYTES_SO_FAR | messages.copiedBytes | bytes of messages copied to be sent
            verbena.registrations | SO_FAR | messages.registrations | messages registered to be sent
            verbena.rendezvous.sent | SO_FAR | messages.rendezvousSent | messages read by peers
            verbena.rendezvous.received | SO_FAR | messages.rendezvousReceived | messages read from peers
            verbena.onesided | SO_FAR | messages.oneSidedOperations | reads, writes and atomics completed
            verbena.stalls.credit | SO_FAR | messages.creditStalls | waits for peers' credits
            verbena.stalls.credit.time | NANOS | messages.creditStallNanos | total time of waits for peers' credits
            verbena.stalls.slot | SO_FAR | messages.slotStalls | waits for the send queue or the read depth
            verbena.stalls.memory | SO_FAR | messages.memoryStalls | waits for registered memory
            verbena.stalls.transfer | SO_FAR | messages.transferStalls | waits of long transfers for others
            verbena.receives.low | SO_FAR | messages.receiveQueueLow | times that receives ran low
            verbena.credits | NOW | messages.credits | messages that peers would accept now
            verbena.credits.granted | NOW | messages.creditsGranted | messages that peers may send now
            verbena.bytes.queued | BYTES_NOW | messages.queuedBytes | bytes of messages not yet completed
            verbena.requests.expired | SO_FAR | expiredRequests | requests dropped because their time was over
            verbena.requests.overloaded | SO_FAR | overloadedRequests | requests that an overloaded server refused
            verbena.requests.abandoned | SO_FAR | abandonedRequests | requests dropped, since nobody waits
            verbena.requests.waiting | NOW | waitingRequests | requests that wait for a handler to begin
            verbena.polls | SO_FAR | loops.polls | polls of completion queues
            verbena.polls.empty | SO_FAR | loops.emptyPolls | polls that found no completion
            verbena.completions | SO_FAR | loops.completions | completions
            verbena.memory.registered | BYTES_NOW | loops.registeredBytes | registered memory
            verbena.buffers.send.used | BYTES_NOW | sendBuffers.usedBytes | memory of send buffers in use
            verbena.buffers.receive.used | BYTES_NOW | receiveBuffers.usedBytes | memory of receive buffers in use
            verbena.buffers.refused | SO_FAR | sendBuffers.refusals+receiveBuffers.refusals | refused allocations
            """);

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
        // Meters hold their object weakly, and providers live as long as the process.
        for (Figure<ProviderStatistics> row : ROWS) {
            row.bind(registry, TAG, provider.name(), provider, any -> figures());
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
