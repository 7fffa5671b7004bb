/** RSocket over RDMA. */
@org.jspecify.annotations.NullMarked
module org.verbena.rsocket {
    requires io.netty.resolver;
    requires static org.jspecify;
    requires org.slf4j;
    requires transitive org.reactivestreams;
    requires transitive org.verbena.api;
    requires transitive reactor.core;
    requires transitive rsocket.core;

    exports org.verbena.rsocket;
}
