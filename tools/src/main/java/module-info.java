/** The verbena command. */
@org.jspecify.annotations.NullMarked
module org.verbena.tools {
    requires static org.jspecify;
    requires org.slf4j;
    requires org.verbena.api;
    requires org.verbena.cm;
    requires org.verbena.doctor;
    requires org.verbena.grpc;
    requires org.verbena.samples;
    requires HdrHistogram;
    requires com.google.gson;
    requires io.grpc.stub;
    requires info.picocli;
    requires java.desktop;
    requires jdk.management;
    requires me.tongfei.progressbar;
    requires org.apache.xmlgraphics.batik.svggen;
    requires xchart;

    opens org.verbena.tools to
            info.picocli;
    opens org.verbena.tools.command to
            info.picocli;
    opens org.verbena.tools.devices to
            info.picocli;
    opens org.verbena.tools.interop.endpoint to
            info.picocli;
    opens org.verbena.tools.interop.pingpong to
            info.picocli;
    opens org.verbena.tools.interop.rping to
            info.picocli;
    opens org.verbena.tools.interop.tutorial to
            info.picocli;
    opens org.verbena.tools.perf to
            info.picocli;
    opens org.verbena.tools.stat to
            info.picocli;
}
