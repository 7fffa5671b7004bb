/**
 * What programs use: RDMA connections as Netty channels, and a short form of client and server.
 *
 * <p>Where to begin:
 *
 * <ul>
 *   <li>{@link org.verbena.api.RdmaServer}, {@link org.verbena.api.RdmaClient} and
 *       {@link org.verbena.api.MessageHandler}: messages, requests and replies without Netty's pipelines. A
 *       server sends to {@link org.verbena.api.ConnectedClient} and {@link org.verbena.api.ClientGroup} unasked.
 *   <li>{@link org.verbena.api.RdmaChannel} and {@link org.verbena.api.RdmaServerChannel}: the same messages in a
 *       Netty pipeline. {@link org.verbena.api.RdmaSocketChannel} and
 *       {@link org.verbena.api.RdmaServerSocketChannel}: bytes, for libraries that are written for sockets.
 *   <li>{@link org.verbena.api.RdmaEventLoopGroup} has the event loops of all of them,
 *       {@link org.verbena.api.RdmaChannelOption} the options.
 *   <li>{@link org.verbena.api.RemoteMemoryOperations}: reads, writes and atomics on the peer's memory.
 *   <li>{@link org.verbena.api.RdmaLadder} and {@link org.verbena.api.LadderSocketChannel}: clients that connect
 *       with the best of several providers.
 * </ul>
 *
 * <p>Exceptions, tokens and keys that programs name as well are in {@code org.verbena.transport}, which this module
 * exports with it. By topic: {@link org.verbena.api.client}, {@link org.verbena.api.ladder},
 * {@link org.verbena.api.datagram}, {@link org.verbena.api.queuepair}, {@link org.verbena.api.ring},
 * {@link org.verbena.api.service}, {@link org.verbena.api.metrics}.
 *
 * <p>May use {@code api.client}, {@code api.service}, {@code api.ladder}, {@code api.queuepair} and all internal
 * packages. The classes here
 * that are not public give a channel's parts their view of it, and name the options.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api;
