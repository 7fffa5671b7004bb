/**
 * A server's listeners and the connections that it has not accepted yet. May use {@code internal.loop}, {@code
 * internal.stat} and {@code internal.option}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.server;
