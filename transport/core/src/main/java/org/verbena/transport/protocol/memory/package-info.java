/**
 * The memory of messages and receives: how much of the pools each may take, and in which order waiters get theirs.
 * Begin with {@link org.verbena.transport.protocol.memory.MessageBuffers}. Uses {@code transport.buffer}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.memory;
