/** Programs that show how Verbena is used. */
@org.jspecify.annotations.NullMarked
module org.verbena.samples {
    requires static org.jspecify;
    requires ch.qos.logback.classic;
    requires ch.qos.logback.core;
    requires org.slf4j;
    requires org.verbena.grpc;
    requires io.grpc.stub;
    requires io.netty.codec.http;
    requires io.netty.codec.http2;
    requires HdrHistogram;
    requires info.picocli;
    requires me.tongfei.progressbar;
    requires org.verbena.api;

    // The verbena command is made of them too.
    exports org.verbena.samples to
            org.verbena.tools;
    exports org.verbena.samples.command to
            org.verbena.tools;
    exports org.verbena.samples.echo to
            org.verbena.tools;
    exports org.verbena.samples.ring to
            org.verbena.tools;
    exports org.verbena.samples.table to
            org.verbena.tools;

    opens org.verbena.samples to
            info.picocli;
    opens org.verbena.samples.command to
            info.picocli;
    opens org.verbena.samples.echo to
            info.picocli;
    opens org.verbena.samples.files to
            info.picocli;
    opens org.verbena.samples.grpc to
            info.picocli;
    opens org.verbena.samples.http to
            info.picocli;
    opens org.verbena.samples.kv to
            info.picocli;
    opens org.verbena.samples.table to
            info.picocli;

    provides ch.qos.logback.classic.spi.Configurator with
            org.verbena.samples.command.CommandLogging;
}
