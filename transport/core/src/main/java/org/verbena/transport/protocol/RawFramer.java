package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** One SEND is one message, without a header. */
final class RawFramer extends Framer {
    private int maxSges;
    private long maxMessageBytes;

    RawFramer(SendLedger ledger, SendMemory memory, FrameSender frames, ReceiveWindow window, Inbox inbox) {
        super(ledger, memory, frames, window, inbox);
    }

    @Override
    void prepare(EndpointCapabilities capabilities) {
        maxSges = capabilities.maxSges();
        maxMessageBytes = capabilities.maxMessageBytes();
    }

    @Override
    boolean hasBegun(Operation operation) {
        return operation.remainingBytes < operation.totalBytes;
    }

    @Override
    Obstacle post(Endpoint endpoint, Operation operation) {
        int total = operation.totalBytes;
        if (total > maxMessageBytes) {
            return refuse(operation, maxMessageBytes);
        }
        WorkRequest request = ledger.request();
        request.asSend(ledger.nextId(), ledger.inlineFlag(total));
        if (total > 0 && memory.gather(operation, total, maxSges, request.buffers()) < total) {
            request.asSend(ledger.nextId(), ledger.inlineFlag(total));
            if (!memory.copy(endpoint, operation, total)) {
                return Obstacle.MEMORY;
            }
        }
        if (!frames.postRaw(endpoint, operation)) {
            return Obstacle.SLOT;
        }
        operation.framePosted(total);
        return Obstacle.NONE;
    }

    /**
     * A SEND or a write with immediate data came, in a receive, which is taken; returns the violation, or null.
     */
    @Nullable String received(ByteBuf buffer, int lengthBytes, int flags, int immediateData, boolean closing) {
        boolean write = (flags & EndpointHandler.REMOTE_WRITE) != 0;
        if (closing) {
            window.reuse(buffer);
        } else if (write) {
            window.reuse(buffer);
            inbox.arrived(null, false, true, immediateData, lengthBytes);
        } else if (lengthBytes > buffer.capacity()) {
            buffer.release();
            return "a receive of " + buffer.capacity() + " bytes reports " + lengthBytes;
        } else {
            buffer.setIndex(0, lengthBytes);
            boolean immediate = (flags & EndpointHandler.WITH_IMMEDIATE) != 0;
            inbox.arrived(buffer, true, immediate, immediateData, lengthBytes);
        }
        return null;
    }
}
