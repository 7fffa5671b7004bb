package org.verbena.grpc.internal.nativetransport;

import io.grpc.internal.ReadableBuffer;
import io.grpc.internal.ReadableBuffers;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.verbena.transport.buffer.BufferPoolOptions;

/**
 * Where the payloads of a connection's DATA are until gRPC has read them: on the heap, or where the channel received
 * them. A call that is not read must not keep the channel from receiving, so only long payloads stay there, which have
 * memory of their own and no receive, and only some of them.
 */
final class InboundPayloads {
    /** More than any usual receive. */
    private static final int MIN_HELD_BYTES = 64 << 10;

    /** How much of the channel's memory the calls of a connection hold at most: half of its share is always left. */
    private static final int MAX_HELD_BYTES =
            (int) Math.min(4 << 20, BufferPoolOptions.ofSystemProperties().maxRegisteredBytes() / 16);

    /** Any thread. */
    private final AtomicInteger heldBytes = new AtomicInteger();

    /** Takes a payload from a message. Event loop only. */
    ReadableBuffer take0(ByteBuf from, int lengthBytes) {
        if (lengthBytes == 0) {
            return ReadableBuffers.empty();
        }
        if (lengthBytes >= MIN_HELD_BYTES && heldBytes.get() + lengthBytes <= MAX_HELD_BYTES) {
            return new InboundBuffer(from.readRetainedSlice(lengthBytes), heldBytes);
        }
        byte[] copy = new byte[lengthBytes];
        from.readBytes(copy);
        return ReadableBuffers.wrap(ByteBuffer.wrap(copy)); // of arrays gRPC gives deserializers no ByteBuffer
    }
}
