/**
 * Netty buffers in registered memory: {@link org.verbena.transport.buffer.RegisteredBufferPool} hands them out of chunks that are
 * registered once, {@link org.verbena.transport.buffer.RdmaByteBufAllocator} makes them what a channel allocates.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.buffer;
