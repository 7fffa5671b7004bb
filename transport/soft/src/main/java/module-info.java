/** Software RDMA provider: iWARP over TCP in pure Java. */
@org.jspecify.annotations.NullMarked
module org.verbena.transport.soft {
    requires static org.jspecify;
    requires org.slf4j;
    requires jdk.net;
    requires transitive org.verbena.transport;

    exports org.verbena.transport.soft;

    provides org.verbena.transport.spi.RdmaProvider with
            org.verbena.transport.soft.SoftProvider;
}
