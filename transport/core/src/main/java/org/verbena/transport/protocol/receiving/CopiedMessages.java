package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The messages of one frame that lies in memory of the endpoint, each in a copy of its own. All are copied before the
 * first is delivered: so the frame can still come in a receive when there is no memory for all.
 */
public final class CopiedMessages {
    private final Inbox inbox;
    private @Nullable ByteBuf[] messages = new ByteBuf[1];
    private int count;

    /**
     * Makes an empty one.
     *
     * @param inbox which they are delivered by
     */
    public CopiedMessages(Inbox inbox) {
        this.inbox = inbox;
    }

    /**
     * Copies one more.
     *
     * @param memory which the peer may change
     * @param at where the message begins
     * @param bytes its length
     * @return false if there is no memory for it: then none is left here
     */
    public boolean tryAdd(MemorySegment memory, long at, int bytes) {
        ByteBuf copy = inbox.tryCopy(memory, at, bytes);
        if (copy == null) {
            drop();
            return false;
        }
        if (count == messages.length) {
            messages = Arrays.copyOf(messages, 4 * count);
        }
        messages[count++] = copy;
        return true;
    }

    /** Delivers them in their order; what the user does not read yet waits. */
    public void deliver() {
        try {
            for (int i = 0; i < count; i++) {
                ByteBuf message = messages[i];
                messages[i] = null;
                if (message != null) {
                    inbox.arrivedCopied(message);
                }
            }
        } finally {
            drop();
        }
    }

    /** Releases what is not delivered. */
    public void drop() {
        for (int i = 0; i < count; i++) {
            ByteBuf message = messages[i];
            messages[i] = null;
            if (message != null) {
                message.release();
            }
        }
        count = 0;
    }
}
