/**
 * The message protocol over a reliable connection: it keeps the boundaries and the order of messages of any size, and a
 * send always finds a posted receive. The wire format is in {@code docs/protocol.md}. This package has what a
 * connection is given and reports: options, agreed parameters, frames. The connection is {@link
 * org.verbena.transport.protocol.connection.MessageConnection}. The packages below this one, in an order in which each
 * uses only those before it: {@code wire}, this one, {@code memory}, {@code state}, {@code sending} and {@code
 * receiving}, {@code rendezvous}, {@code handshake}, {@code framing}, {@code connection}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol;
