/**
 * The connection itself, which holds the parts and decides in which order they work. Begin with {@link
 * org.verbena.transport.protocol.connection.MessageConnection} and its listener. Uses all other packages of the
 * protocol; none uses it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.connection;
