/** RDMA between two processes of one host and user: shared memory. */
@org.jspecify.annotations.NullMarked
module org.verbena.transport.shm {
    requires static org.jspecify;
    requires org.slf4j;
    requires transitive org.verbena.transport;

    exports org.verbena.transport.shm;

    provides org.verbena.transport.spi.RdmaProvider with
            org.verbena.transport.shm.ShmProvider;
}
