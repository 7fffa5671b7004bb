/**
 * RSocket over RDMA: {@link org.verbena.rsocket.RdmaClientTransport} and {@link
 * org.verbena.rsocket.RdmaServerTransport}.
 */
package org.verbena.rsocket;
