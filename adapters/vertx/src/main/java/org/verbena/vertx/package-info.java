/** Vert.x over RDMA: {@link org.verbena.vertx.RdmaTransport} is what {@code Vertx.builder()} takes. */
package org.verbena.vertx;
