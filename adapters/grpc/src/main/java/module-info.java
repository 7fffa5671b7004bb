/** gRPC over RDMA. */
@org.jspecify.annotations.NullMarked
module org.verbena.grpc {
    requires static org.jspecify;
    requires com.google.common;
    requires io.grpc.internal; // only for the native transport
    requires org.slf4j;
    requires transitive io.grpc;
    requires transitive io.grpc.netty;
    requires transitive org.verbena.api;

    exports org.verbena.grpc;

    provides io.grpc.NameResolverProvider with
            org.verbena.grpc.internal.resolver.VerbenaNameResolverProvider;
}
