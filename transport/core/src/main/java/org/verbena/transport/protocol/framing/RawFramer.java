package org.verbena.transport.protocol.framing;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.Notice;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.Obstacle;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** One SEND is one message, without a header. */
public final class RawFramer extends Framer {
    private int maxSges;
    private long maxMessageBytes;

    public RawFramer(SendLedger ledger, SendMemory memory, FrameSender frames, ReceiveWindow window, Inbox inbox) {
        super(ledger, memory, frames, window, inbox);
    }

    @Override
    public void prepare(EndpointCapabilities capabilities) {
        maxSges = capabilities.maxSges();
        maxMessageBytes = capabilities.maxMessageBytes();
    }

    @Override
    public boolean hasBegun(Operation operation) {
        return operation.remainingBytes < operation.totalBytes;
    }

    @Override
    public Obstacle post(Endpoint endpoint, Operation operation) {
        int total = operation.totalBytes;
        if (total > maxMessageBytes) {
            return refuse(operation, maxMessageBytes);
        }
        WorkRequest request = ledger.request();
        describe(request, operation);
        if (total > 0 && memory.gather(operation, total, maxSges, request.buffers()) < total) {
            describe(request, operation);
            if (!memory.copy(endpoint, operation, total)) {
                return Obstacle.MEMORY;
            }
        }
        boolean isDone = ledger.isDoneWhenPosted(false, false);
        if (!frames.postRaw(endpoint, isDone ? null : operation)) {
            return Obstacle.SLOT;
        }
        operation.framePosted(total, isDone);
        return Obstacle.NONE;
    }

    private void describe(WorkRequest request, Operation operation) {
        // Inline data is read when it is posted, and fenced data may not have arrived yet.
        boolean fenced = (operation.sendFlags & WorkRequest.FENCE) != 0;
        int flags = operation.sendFlags | (fenced ? 0 : ledger.inlineFlag(operation.totalBytes));
        switch (operation.sendOpcode) {
            case SEND_WITH_IMMEDIATE -> request.asSendWithImmediate(ledger.nextId(), flags, operation.immediateData);
            case SEND_WITH_INVALIDATE -> request.asSendWithInvalidate(ledger.nextId(), flags, operation.remoteKey);
            default -> request.asSend(ledger.nextId(), flags);
        }
    }

    /**
     * A SEND or a write with immediate data arrived in a receive, which this takes; returns the violation, or null.
     */
    @Nullable String received(ByteBuf buffer, int lengthBytes, int flags, int immediateData, boolean closing) {
        boolean write = (flags & EndpointHandler.REMOTE_WRITE) != 0;
        if (closing) {
            window.reuse(buffer);
        } else if (write) {
            window.reuse(buffer);
            inbox.arrived(null, false, Notice.IMMEDIATE, immediateData, lengthBytes);
        } else if (lengthBytes > buffer.capacity()) {
            buffer.release();
            return "a receive of " + buffer.capacity() + " bytes reports " + lengthBytes;
        } else {
            buffer.setIndex(0, lengthBytes);
            inbox.arrived(buffer, true, notice(flags), immediateData, lengthBytes);
        }
        return null;
    }

    private static Notice notice(int flags) {
        if ((flags & EndpointHandler.WITH_IMMEDIATE) != 0) {
            return Notice.IMMEDIATE;
        }
        return (flags & EndpointHandler.WITH_INVALIDATE) != 0 ? Notice.INVALIDATED : Notice.NONE;
    }
}
