/**
 * Blocking sockets over RDMA, for programs without Netty: {@link org.verbena.sockets.RdmaSocketFactory} and {@link
 * org.verbena.sockets.RdmaServerSocketFactory}.
 */
package org.verbena.sockets;
