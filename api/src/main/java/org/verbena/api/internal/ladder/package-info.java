/**
 * Connecting by a ladder: attempts in order, the memory of addresses, and the channel on a channel. May use {@code
 * internal.channel}, {@code internal.loop}, {@code internal.stat} and the values of {@code api.ladder}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.ladder;
