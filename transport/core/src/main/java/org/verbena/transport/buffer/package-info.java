/**
 * Netty buffers in registered memory: {@link org.verbena.transport.buffer.RegisteredBufferPool} takes them from chunks
 * that are registered once, and {@link org.verbena.transport.buffer.RdmaByteBufAllocator} makes a pool the allocator of
 * a channel.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.buffer;
