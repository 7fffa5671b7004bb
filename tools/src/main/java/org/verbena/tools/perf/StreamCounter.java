package org.verbena.tools.perf;

import io.netty.buffer.ByteBuf;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the messages of a stream that is measured in both directions. Each begins with {@link PerfProtocol#COUNT} and
 * has the same size; behind the last one is {@link PerfProtocol#HOW_MANY}. Written by the channel's event loop.
 */
final class StreamCounter {
    private final int bytes;
    private final AtomicLong counted = new AtomicLong();

    /** Bytes of the message that is arriving. */
    private int bytesLeft;

    /**
     * Creates a counter at 0.
     *
     * @param bytes of a message
     */
    StreamCounter(int bytes) {
        this.bytes = bytes;
    }

    /**
     * Counts the bytes that have arrived.
     *
     * @param arrived is read up to its end, or up to and with the byte behind the last message
     * @return whether that was the last message
     * @throws IllegalArgumentException the bytes are not a message
     */
    boolean take(ByteBuf arrived) {
        while (arrived.isReadable()) {
            if (bytesLeft == 0) {
                byte what = arrived.readByte();
                if (what == PerfProtocol.HOW_MANY) {
                    return true;
                }
                if (what != PerfProtocol.COUNT) {
                    throw new IllegalArgumentException("a message of the stream begins with the byte " + what);
                }
                bytesLeft = bytes - 1;
            } else {
                int more = Math.min(bytesLeft, arrived.readableBytes());
                arrived.skipBytes(more);
                bytesLeft -= more;
            }
            if (bytesLeft == 0) {
                counted.incrementAndGet();
            }
        }
        return false;
    }

    /** How many are complete. Any thread. */
    long counted() {
        return counted.get();
    }
}
