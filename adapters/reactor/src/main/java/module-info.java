/** Reactor Netty over RDMA. */
@org.jspecify.annotations.NullMarked
module org.verbena.reactor {
    requires static org.jspecify;
    requires transitive org.verbena.api;
    requires transitive reactor.core;
    requires transitive reactor.netty.core;

    exports org.verbena.reactor;
}
