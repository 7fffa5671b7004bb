package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.TracerProvider;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.util.Collection;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.Method;
import org.verbena.api.tracing.RequestTracing;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestException.Refused.Reason;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.spi.Patience;

/** Traces with OpenTelemetry's SDK. What is below them runs on all providers elsewhere. */
class RequestTracingTest extends ApiSuite {
    private static final Method<String, String> OUTER = Method.of("front", "ask", Codec.TEXT, Codec.TEXT);
    private static final Method<String, String> INNER = Method.of("back", "look-up", Codec.TEXT, Codec.TEXT);
    private static final String TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
    private static final String PARENT = "00f067aa0ba902b7";

    private final Queue<SpanData> spans = new ConcurrentLinkedQueue<>();
    private final RequestTracing tracing = new RequestTracing(telemetry());

    @Override
    protected String provider() {
        return "soft";
    }

    private OpenTelemetry telemetry() {
        SpanExporter exporter = new SpanExporter() {
            @Override
            public CompletableResultCode export(Collection<SpanData> ended) {
                spans.addAll(ended);
                return CompletableResultCode.ofSuccess();
            }

            @Override
            public CompletableResultCode flush() {
                return CompletableResultCode.ofSuccess();
            }

            @Override
            public CompletableResultCode shutdown() {
                return CompletableResultCode.ofSuccess();
            }
        };
        TracerProvider tracers = SdkTracerProvider.builder()
                .addSpanProcessor(SimpleSpanProcessor.create(exporter))
                .build();
        ContextPropagators propagators = ContextPropagators.create(TextMapPropagator.composite(
                W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance()));
        return new OpenTelemetry() {
            @Override
            public TracerProvider getTracerProvider() {
                return tracers;
            }

            @Override
            public ContextPropagators getPropagators() {
                return propagators;
            }
        };
    }

    private RdmaServer server(MessageHandler handler) {
        return RdmaServer.builder()
                .group(group)
                .intercept(tracing)
                .virtualThreads(true)
                .bind(host(), 0, handler);
    }

    private RdmaClient client(RdmaServer server) {
        return RdmaClient.builder().group(group).intercept(tracing).connect(host(), server.port());
    }

    private SpanData span(String name, SpanKind kind) {
        Patience.until(
                kind + " span " + name,
                () -> spans.stream().anyMatch(span -> span.getName().equals(name) && span.getKind() == kind));
        return spans.stream()
                .filter(span -> span.getName().equals(name) && span.getKind() == kind)
                .findFirst()
                .orElseThrow();
    }

    private static <T> T within(Context context, Callable<T> call) throws Exception {
        return context.wrap(call).call();
    }

    private static Context remoteParent() {
        TraceState state = TraceState.builder().put("vendor", "blue").build();
        return Context.root().with(Span.wrap(SpanContext.create(TRACE, PARENT, TraceFlags.getSampled(), state)));
    }

    @Test
    void aTraceGoesOnOverTwoServers() throws Exception {
        try (RdmaServer back = server(Methods.NONE.with(INNER, (exchange, question) -> "found " + question));
                RdmaClient backend = client(back);
                RdmaServer front = server(Methods.NONE.with(
                        OUTER,
                        (exchange, question) -> backend.call(INNER, question).get()));
                RdmaClient client = client(front)) {
            assertThat(within(remoteParent(), () -> client.call(OUTER, "it")).get())
                    .isEqualTo("found it");
            List<SpanData> chain = List.of(
                    span("front/ask", SpanKind.CLIENT),
                    span("front/ask", SpanKind.SERVER),
                    span("back/look-up", SpanKind.CLIENT),
                    span("back/look-up", SpanKind.SERVER));
            String parent = PARENT;
            for (SpanData each : chain) {
                assertThat(each.getTraceId()).isEqualTo(TRACE);
                assertThat(each.getParentSpanId()).as(each.getName()).isEqualTo(parent);
                assertThat(each.getSpanContext().getTraceState().get("vendor")).isEqualTo("blue");
                assertThat(each.getStatus().getStatusCode()).isEqualTo(StatusCode.UNSET);
                parent = each.getSpanId();
            }
            assertThat(spans).hasSize(4);
        }
    }

    @Test
    void theMetadataIsThatOfTheW3c() throws Exception {
        MessageHandler answer = MessageHandler.ofBytes(
                (exchange, message) -> exchange.reply((exchange.metadata().text("traceparent") + " "
                                + exchange.metadata().text("tracestate"))
                        .getBytes(UTF_8)));
        try (RdmaServer server = server(answer);
                RdmaClient client = client(server)) {
            byte[] headers =
                    within(remoteParent(), () -> client.request(new byte[1])).get();
            SpanData sent = span(RequestTracing.REQUEST, SpanKind.CLIENT);
            assertThat(new String(headers, UTF_8))
                    .isEqualTo("00-" + TRACE + "-" + sent.getSpanId() + "-01 vendor=blue");
        }
    }

    @Test
    void whatIsNoTraceBeginsOne() throws Exception {
        try (RdmaServer server = server((exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            for (String parent : new String[] {"", "00", "zz-" + TRACE + "-" + PARENT + "-01", "\u00e4".repeat(500)}) {
                Metadata metadata = Metadata.EMPTY.with("traceparent", parent).with("tracestate", ",=,");
                assertThat(client.request(new byte[3], RequestOptions.DEFAULTS.withMetadata(metadata))
                                .get())
                        .hasSize(3);
                SpanData span = span(RequestTracing.REQUEST, SpanKind.SERVER);
                assertThat(span.getParentSpanContext().isValid()).isFalse();
                assertThat(span.getTraceId()).isNotEqualTo(TRACE);
                spans.clear();
            }
        }
    }

    @Test
    void spansSayHowRequestsEnd() throws Exception {
        Method<String, String> unknown = Method.of("made", "up", Codec.TEXT, Codec.TEXT);
        Methods methods = Methods.NONE
                .with(INNER, (exchange, question) -> {
                    throw new RequestFailure(404, "nothing");
                })
                .otherwise((exchange, message) -> {});
        AttributeKey<String> error = AttributeKey.stringKey("error.type");
        try (RdmaServer server = server(methods);
                RdmaClient client = client(server)) {
            failure("the call", client.call(INNER, "it"));
            for (SpanKind kind : new SpanKind[] {SpanKind.CLIENT, SpanKind.SERVER}) {
                SpanData span = span("back/look-up", kind);
                assertThat(span.getStatus().getStatusCode()).isEqualTo(StatusCode.ERROR);
                assertThat(span.getAttributes().get(error)).isEqualTo(RequestFailure.class.getName());
            }
            failure("the call", client.call(unknown, "it"));
            assertThat(span("made/up", SpanKind.CLIENT).getAttributes().get(error))
                    .isEqualTo(RequestException.Refused.class.getName());
            assertThat(span(RequestTracing.REQUEST, SpanKind.SERVER).getStatus().getStatusCode())
                    .isEqualTo(StatusCode.ERROR);
            spans.clear();
            CompletableFuture<byte[]> given = client.request(new byte[1]);
            given.cancel(false);
            assertThat(span(RequestTracing.REQUEST, SpanKind.CLIENT).getStatus().getStatusCode())
                    .isEqualTo(StatusCode.UNSET);
        }
    }

    /** Whoever is not let in chooses no names. */
    @Test
    void spansOfRefusedRequestsHaveNoNameOfTheClients() throws Exception {
        Method<String, String> madeUp = Method.of("made", "up", Codec.TEXT, Codec.TEXT);
        MessageHandler strict = (exchange, message) -> exchange.refuse(Reason.NOT_AUTHORIZED, "no token");
        try (RdmaServer server = server(strict);
                RdmaClient client = client(server)) {
            failure("the call", client.call(madeUp, "it"));
            assertThat(span(RequestTracing.REQUEST, SpanKind.SERVER).getStatus().getStatusCode())
                    .isEqualTo(StatusCode.ERROR);
        }
    }

    /** It is left out, and the request is sent. */
    @Test
    void aContextWithoutRoomFailsNoRequest() throws Exception {
        MessageHandler names = MessageHandler.ofBytes((exchange, message) ->
                exchange.reply(String.join(" ", exchange.metadata().names()).getBytes(UTF_8)));
        try (RdmaServer server = server(names);
                RdmaClient client = client(server)) {
            Context heavy = remoteParent()
                    .with(Baggage.builder()
                            .put("load", "x".repeat(Metadata.MAX_BYTES))
                            .build());
            assertThat(within(heavy, () -> client.request(new byte[1])).get())
                    .isEqualTo("traceparent tracestate".getBytes(UTF_8));
            Metadata full = Metadata.EMPTY.with("own", "x".repeat(Metadata.MAX_BYTES - 6));
            assertThat(within(heavy, () -> client.request(new byte[1], RequestOptions.DEFAULTS.withMetadata(full)))
                            .get())
                    .isEqualTo("own".getBytes(UTF_8));
        }
    }
}
