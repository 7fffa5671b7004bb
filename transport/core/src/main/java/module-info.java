/** Provider SPI, message protocol, registered buffers and the choice of a provider. */
@org.jspecify.annotations.NullMarked
module org.verbena.transport {
    requires static org.jspecify;
    requires java.management;
    requires jdk.jfr;
    requires org.slf4j;
    requires transitive io.netty.transport;
    requires transitive io.netty.buffer;
    requires transitive io.netty.common;

    exports org.verbena.transport;
    exports org.verbena.transport.provider;
    exports org.verbena.transport.protocol;
    exports org.verbena.transport.protocol.connection;
    exports org.verbena.transport.protocol.memory;
    exports org.verbena.transport.buffer;
    exports org.verbena.transport.spi;
    exports org.verbena.transport.stat;
    exports org.verbena.transport.ffm to
            org.verbena.transport.shm,
            org.verbena.transport.soft,
            org.verbena.transport.verbs;
    exports org.verbena.transport.system to
            org.verbena.doctor,
            org.verbena.transport.shm,
            org.verbena.transport.soft,
            org.verbena.transport.verbs;
    exports org.verbena.transport.software to
            org.verbena.testing,
            org.verbena.transport.shm,
            org.verbena.transport.soft;

    uses org.verbena.transport.spi.RdmaProvider;
}
