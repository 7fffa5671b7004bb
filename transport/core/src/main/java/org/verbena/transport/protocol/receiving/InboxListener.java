package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/** Gets what an {@link Inbox} delivers. Throws nothing. */
public interface InboxListener {
    /**
     * A notice, a message, or a notice and then a message.
     *
     * @param notice what came besides bytes
     * @param word the immediate data, or the key
     * @param lengthBytes how much the peer wrote
     * @param message the listener's; null with a notice only
     */
    void arrived(Notice notice, int word, int lengthBytes, @Nullable ByteBuf message);

    /** The peer has ended its half of the stream. */
    void end();

    /** The available messages have been delivered. */
    void readComplete();
}
