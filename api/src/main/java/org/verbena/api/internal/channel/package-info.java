/**
 * The parts of a connected channel: connecting, from its outbound buffer to the connection, from the connection to its
 * pipeline, one-sided operations, its clock. They use the channel through interfaces of their own. May use {@code
 * internal.loop}, {@code internal.stat}, {@code internal.memory}, {@code internal.option} and {@code queuepair}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.channel;
