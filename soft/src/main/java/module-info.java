/** Software RDMA provider: iWARP over TCP in pure Java. */
@org.jspecify.annotations.NullMarked
module org.verbena.soft {
    requires static org.jspecify;
    requires org.slf4j;
    requires jdk.net;
    requires transitive org.verbena.transport;

    exports org.verbena.soft;

    provides org.verbena.transport.spi.RdmaProvider with
            org.verbena.soft.SoftProvider;
}
