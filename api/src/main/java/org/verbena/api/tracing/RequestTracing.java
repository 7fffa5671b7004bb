package org.verbena.api.tracing;

import io.netty.buffer.ByteBuf;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CancellationException;
import org.jspecify.annotations.Nullable;
import org.verbena.api.Exchange;
import org.verbena.api.MessageHandler;
import org.verbena.api.ServerInterceptor;
import org.verbena.api.client.ClientInterceptor;
import org.verbena.api.client.OutgoingRequest;
import org.verbena.api.service.Metadata;
import org.verbena.transport.RequestException;

/**
 * Continues OpenTelemetry's traces from client to server: a span for each request at both ends, whose context goes with
 * the request as metadata. With the usual propagator these are W3C's {@code traceparent} and {@code tracestate}. One
 * object serves any number of clients and servers.
 *
 * <pre>{@code
 * RequestTracing tracing = new RequestTracing(GlobalOpenTelemetry.get());
 * RdmaServer server = RdmaServer.builder().intercept(tracing).bind("0.0.0.0", 7471, handler);
 * RdmaClient client = RdmaClient.builder().intercept(tracing).connect("10.0.0.2", 7471);
 * }</pre>
 *
 * <p>A client's span is a child of the context that is current on the thread that sends the request. A server's is
 * current while the handler runs, so that what the handler does and sends is part of the trace. Spans have the name of
 * the method, as {@code orders/place}; those of requests without a method are called {@value #REQUEST}. A context that
 * metadata has no room for is not sent.
 */
public final class RequestTracing implements ClientInterceptor, ServerInterceptor {
    /** The name of spans of requests that call no method. */
    public static final String REQUEST = "request";

    private static final AttributeKey<String> SYSTEM = AttributeKey.stringKey("rpc.system");
    private static final AttributeKey<String> ERROR = AttributeKey.stringKey("error.type");

    /** Metadata as propagators see it; names of others, such as {@code X-B3-TraceId}, are in lower case. */
    private static final TextMapGetter<Metadata> GETTER = new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Metadata carrier) {
            return carrier.names();
        }

        @Override
        public @Nullable String get(@Nullable Metadata carrier, String key) {
            return carrier == null ? null : carrier.text(key.toLowerCase(Locale.ROOT));
        }
    };

    private final Tracer tracer;
    private final TextMapPropagator propagator;

    /**
     * Creates one.
     *
     * @param telemetry has the tracers and the propagators
     */
    public RequestTracing(OpenTelemetry telemetry) {
        tracer = telemetry.getTracer("org.verbena");
        propagator = telemetry.getPropagators().getTextMapPropagator();
    }

    @Override
    public void onRequest(OutgoingRequest request) {
        Context parent = Context.current();
        Span span = begin(request.method(), SpanKind.CLIENT, parent);
        request.onEnd((metadata, failure) -> end(span, failure));
        Map<String, String> entries = new LinkedHashMap<>();
        propagator.inject(parent.with(span), entries, (carrier, key, value) -> {
            if (carrier != null) {
                carrier.put(key.toLowerCase(Locale.ROOT), value);
            }
        });
        entries.forEach((name, value) -> {
            if (fits(request.metadata(), name, value)) {
                request.addMetadata(Metadata.EMPTY.with(name, value));
            }
        });
    }

    /** A trace is not worth a request. */
    private static boolean fits(Metadata metadata, String name, String value) {
        int bytes = 3 + name.length() + value.getBytes(StandardCharsets.UTF_8).length;
        return metadata.sizeBytes() + bytes <= Metadata.MAX_BYTES
                && metadata.names().size() < Metadata.MAX_ENTRIES;
    }

    @Override
    public void onRequest(Exchange exchange, ByteBuf message, MessageHandler next) throws Exception {
        Context parent = propagator.extract(Context.root(), exchange.metadata(), GETTER);
        Span span = begin(exchange.method(), SpanKind.SERVER, parent);
        exchange.onEnd(failure -> {
            if (failure instanceof RequestException.Refused) {
                span.updateName(REQUEST); // a name that the client may have made up
            }
            end(span, failure);
        });
        parent.with(span)
                .wrap(() -> {
                    next.onMessage(exchange, message);
                    return exchange;
                })
                .call();
    }

    private Span begin(@Nullable String method, SpanKind kind, Context parent) {
        return tracer.spanBuilder(method == null ? REQUEST : method)
                .setSpanKind(kind)
                .setParent(parent)
                .setAttribute(SYSTEM, "verbena")
                .startSpan();
    }

    private static void end(Span span, @Nullable Throwable failure) {
        if (failure != null) {
            span.setAttribute(ERROR, failure.getClass().getName());
            if (!(failure instanceof CancellationException)) {
                span.setStatus(StatusCode.ERROR);
            }
        }
        span.end();
    }
}
