/** Vert.x over RDMA. */
@org.jspecify.annotations.NullMarked
module org.verbena.vertx {
    requires static org.jspecify;
    requires transitive io.vertx.core;
    requires transitive org.verbena.api;

    exports org.verbena.vertx;
}
