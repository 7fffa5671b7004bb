/** The Channel API. */
@org.jspecify.annotations.NullMarked
module org.verbena.api {
    requires static org.jspecify;
    requires jdk.jfr;
    requires org.slf4j;
    requires transitive org.verbena.transport;
    requires static micrometer.core; // only for org.verbena.api.metrics
    requires static io.opentelemetry.api; // these two only for org.verbena.api.tracing
    requires static io.opentelemetry.context;

    exports org.verbena.api;
    exports org.verbena.api.client;
    exports org.verbena.api.datagram;
    exports org.verbena.api.ladder;
    exports org.verbena.api.metrics;
    exports org.verbena.api.queuepair;
    exports org.verbena.api.ring;
    exports org.verbena.api.service;
    exports org.verbena.api.tracing;
}
