/** The native provider: rdma_cm and libibverbs under Netty event loops. */
@org.jspecify.annotations.NullMarked
module org.verbena.transport.verbs {
    requires static org.jspecify;
    requires org.slf4j;
    requires transitive org.verbena.transport;
    requires org.verbena.cm;
    requires org.verbena.verbs;

    provides org.verbena.transport.spi.RdmaProvider with
            org.verbena.transport.verbs.VerbsProvider;
}
