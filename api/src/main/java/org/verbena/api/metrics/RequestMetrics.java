package org.verbena.api.metrics;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.netty.buffer.ByteBuf;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.api.Exchange;
import org.verbena.api.MessageHandler;
import org.verbena.api.ServerInterceptor;
import org.verbena.api.client.ClientInterceptor;
import org.verbena.api.client.OutgoingRequest;
import org.verbena.transport.RequestException;

/**
 * Times requests by method and outcome, as Micrometer's timers: how many there are, how many fail and how, and how long
 * they take. One object serves any number of clients and servers; each request costs a few small objects.
 *
 * <pre>{@code
 * RequestMetrics requests = new RequestMetrics(registry);
 * RdmaServer server = RdmaServer.builder().intercept(requests).bind("0.0.0.0", 7471, handler);
 * RdmaClient client = RdmaClient.builder().intercept(requests).connect("10.0.0.2", 7471);
 * }</pre>
 *
 * <p>{@value #CLIENT} runs from when a request is sent first to its outcome, whatever it waits for and however often it
 * is sent again; {@value #SERVER} from when its handler begins to its answer. Both have the tags {@code method}, which
 * is {@value #NO_METHOD} for requests without one, and {@code outcome}: {@value #OK}, or the class of the exception.
 */
public final class RequestMetrics implements ClientInterceptor, ServerInterceptor {
    /** The timer of clients. */
    public static final String CLIENT = "verbena.requests.client";

    /** The timer of servers. */
    public static final String SERVER = "verbena.requests.server";

    /** The method of requests that call none. */
    public static final String NO_METHOD = "request";

    /** The outcome of requests that have a reply. */
    public static final String OK = "ok";

    private record Key(String name, String method, String outcome) {}

    private final MeterRegistry registry;
    private final Map<Key, Timer> timers = new ConcurrentHashMap<>();

    /**
     * Creates one.
     *
     * @param registry gets the timers
     */
    public RequestMetrics(MeterRegistry registry) {
        this.registry = registry;
    }

    @Override
    public void onRequest(OutgoingRequest request) {
        long began = System.nanoTime();
        String method = request.method();
        request.onEnd((metadata, failure) -> record(CLIENT, method, failure, began));
    }

    @Override
    public void onRequest(Exchange exchange, ByteBuf message, MessageHandler next) throws Exception {
        long began = System.nanoTime();
        String method = exchange.method();
        // A client may have made up the name of a method that is refused.
        exchange.onEnd(
                failure -> record(SERVER, failure instanceof RequestException.Refused ? null : method, failure, began));
        next.onMessage(exchange, message);
    }

    private void record(String name, @Nullable String method, @Nullable Throwable failure, long began) {
        Key key = new Key(
                name,
                method == null ? NO_METHOD : method,
                failure == null ? OK : failure.getClass().getSimpleName());
        timers.computeIfAbsent(key, this::timer).record(System.nanoTime() - began, TimeUnit.NANOSECONDS);
    }

    private Timer timer(Key key) {
        return Timer.builder(key.name)
                .tag("method", key.method)
                .tag("outcome", key.outcome)
                .register(registry);
    }
}
