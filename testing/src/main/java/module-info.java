/**
 * A test kit for programs that use Verbena: a provider within one process, time that the test moves, and faults on
 * demand.
 */
@org.jspecify.annotations.NullMarked
module org.verbena.testing {
    requires static org.jspecify;
    requires org.slf4j;
    requires transitive org.verbena.transport;

    exports org.verbena.testing;

    provides org.verbena.transport.spi.RdmaProvider with
            org.verbena.testing.InProcessProvider;
}
