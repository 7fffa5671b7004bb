package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.jspecify.annotations.Nullable;
import org.verbena.api.service.MessageStream;

/** The messages of a stream, for a thread that waits for each. */
final class ReceivedItems implements Iterator<byte[]> {
    private final MessageStream stream;

    /** Null if it has not been received. */
    private byte @Nullable [] next;

    ReceivedItems(MessageStream stream) {
        this.stream = stream;
    }

    @Override
    public boolean hasNext() {
        if (next == null) {
            next = receive();
        }
        return next != null;
    }

    private byte @Nullable [] receive() {
        ByteBuf message;
        try {
            message = stream.receive();
        } catch (InterruptedException interruption) {
            throw ShortForm.interrupted("receive from a stream", interruption);
        }
        if (message == null) {
            return null;
        }
        try {
            // Most are copies that nobody else has.
            return ByteBufUtil.getBytes(message, message.readerIndex(), message.readableBytes(), false);
        } finally {
            message.release();
        }
    }

    @Override
    public byte[] next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the stream has ended");
        }
        byte[] message = next;
        next = null;
        return message == null ? new byte[0] : message;
    }
}
