/** Vert.x over RDMA: pass an {@link org.verbena.vertx.RdmaTransport} to {@code Vertx.builder()}. */
package org.verbena.vertx;
