package org.verbena.bench;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.memory.MessageBuffers;

/**
 * The pools of connections of the message protocol on one loop, as channels have them. Made when first asked for. One
 * thread.
 */
public final class MessagePools {
    private static final BufferPoolOptions OPTIONS = BufferPoolOptions.DEFAULTS.withAccess(Set.of(Access.LOCAL_WRITE));

    private @Nullable RegisteredBufferPool sending;
    private @Nullable MessageBuffers buffers;
    private final EventLoop loop;

    /**
     * None yet.
     *
     * @param loop of all connections
     */
    public MessagePools(EventLoop loop) {
        this.loop = loop;
    }

    /**
     * What a connection takes its buffers from.
     *
     * @param domain the same for all
     * @return both pools
     */
    public MessageBuffers of(MemoryDomain domain) {
        MessageBuffers known = buffers;
        if (known == null) {
            RegisteredBufferPool forSending = new RegisteredBufferPool(domain, OPTIONS);
            RegisteredBufferPool forReceiving = new RegisteredBufferPool(domain, OPTIONS);
            forSending.attach(loop);
            forReceiving.attach(loop);
            known = new MessageBuffers(forSending, forReceiving);
            sending = forSending;
            buffers = known;
        }
        return known;
    }

    /**
     * A message to be filled and sent, once a connection is active.
     *
     * @param bytes its capacity at least
     * @return empty; the caller's
     */
    public ByteBuf message(int bytes) {
        RegisteredBufferPool pool = sending;
        if (pool == null) {
            throw new IllegalStateException("no connection has asked for its buffers");
        }
        return pool.allocate(bytes);
    }
}
