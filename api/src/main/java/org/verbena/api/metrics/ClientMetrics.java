package org.verbena.api.metrics;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import org.verbena.api.RdmaClient;
import org.verbena.transport.ClientStatistics;

/**
 * The figures of a client as Micrometer's meters, tagged {@code target}: what waits in it, how often it has connected
 * and failed to, requests that were sent again. {@code docs/observability.md} lists them.
 *
 * <pre>{@code
 * new ClientMetrics(client).bindTo(registry);
 * }</pre>
 */
public final class ClientMetrics implements MeterBinder {
    private static final List<Figure<ClientStatistics>> ROWS = Figure.table(ClientStatistics.class, """
            verbena.client.waiting | NOW | waitingRequests | what waits for a connection, or for room on one
            verbena.client.waiting.size | BYTES_NOW | waitingBytes | their bytes
            verbena.client.connections | SO_FAR | connections | connections so far
            verbena.client.failures | SO_FAR | failedAttempts | failed attempts, and connections that ended
            verbena.client.retries | SO_FAR | retries | requests that were sent again after a loss or an overload
            verbena.client.hedges | SO_FAR | hedges | requests that were sent twice at once
            verbena.client.late | SO_FAR | lateReplies | replies to requests that had timed out or were cancelled
            """);

    private final RdmaClient client;

    /**
     * Creates meters for a client.
     *
     * @param client which the meters do not keep from being collected
     */
    public ClientMetrics(RdmaClient client) {
        this.client = client;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        String target = client.statistics().target();
        for (Figure<ClientStatistics> row : ROWS) {
            row.bind(registry, "target", target, client, RdmaClient::statistics);
        }
    }
}
