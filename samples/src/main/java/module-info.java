/** The verbena command. */
@org.jspecify.annotations.NullMarked
module org.verbena.samples {
    requires static org.jspecify;
    requires ch.qos.logback.classic;
    requires ch.qos.logback.core;
    requires org.slf4j;
    requires org.verbena.api;
    requires org.verbena.cm;
    requires org.verbena.doctor;
    requires org.verbena.grpc;
    requires HdrHistogram;
    requires com.google.gson;
    requires io.grpc.stub;
    requires io.netty.codec.http;
    requires io.netty.codec.http2;
    requires info.picocli;
    requires java.desktop;
    requires jdk.management;
    requires me.tongfei.progressbar;
    requires org.apache.xmlgraphics.batik.svggen;
    requires xchart;

    opens org.verbena.samples to
            info.picocli;
    opens org.verbena.samples.command to
            info.picocli;
    opens org.verbena.samples.devices to
            info.picocli;
    opens org.verbena.samples.echo to
            info.picocli;
    opens org.verbena.samples.endpoint to
            info.picocli;
    opens org.verbena.samples.files to
            info.picocli;
    opens org.verbena.samples.grpc to
            info.picocli;
    opens org.verbena.samples.http to
            info.picocli;
    opens org.verbena.samples.kv to
            info.picocli;
    opens org.verbena.samples.perf to
            info.picocli;
    opens org.verbena.samples.pingpong to
            info.picocli;
    opens org.verbena.samples.rping to
            info.picocli;
    opens org.verbena.samples.stat to
            info.picocli;
    opens org.verbena.samples.table to
            info.picocli;
    opens org.verbena.samples.tutorial to
            info.picocli;

    provides ch.qos.logback.classic.spi.Configurator with
            org.verbena.samples.CommandLogging;
}
