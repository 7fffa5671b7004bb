/** Blocking sockets over RDMA. */
@org.jspecify.annotations.NullMarked
module org.verbena.sockets {
    requires static org.jspecify;
    requires transitive org.verbena.api;

    exports org.verbena.sockets;
}
