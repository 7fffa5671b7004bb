/**
 * Connecting by a ladder: attempts in order, the memory of addresses, the channel on a channel, and moving to a better
 * rung. May use {@code internal.request}, {@code internal.channel}, {@code internal.loop}, {@code internal.stat} and
 * the values of {@code api.ladder}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.ladder;
