/**
 * The memory of messages and receives: who may take how much of the pools, and in which order those that wait get
 * theirs. Begin with {@link org.verbena.transport.protocol.memory.MessageBuffers}. Uses {@code transport.buffer}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.memory;
