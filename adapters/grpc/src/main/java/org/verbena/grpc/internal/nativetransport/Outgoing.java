package org.verbena.grpc.internal.nativetransport;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** What a call sends after its beginning: DATA, or a server's TRAILERS. As a task it is handed to the connection. */
final class Outgoing implements Runnable {
    private final NativeConnection connection;
    final StreamFlow flow;
    final @Nullable OutboundBuffer buffer;
    final boolean end;
    final @Nullable Metadata trailers;
    final int messages;

    /** Set if the part before the rest of the buffer has been sent. */
    boolean begun;

    private Outgoing(
            NativeConnection connection,
            StreamFlow flow,
            @Nullable OutboundBuffer buffer,
            boolean end,
            @Nullable Metadata trailers,
            int messages) {
        this.connection = connection;
        this.flow = flow;
        this.buffer = buffer;
        this.end = end;
        this.trailers = trailers;
        this.messages = messages;
    }

    static Outgoing data(
            NativeConnection connection, StreamFlow flow, @Nullable OutboundBuffer buffer, boolean end, int messages) {
        Outgoing made = new Outgoing(connection, flow, buffer, end, null, messages);
        connection.unsent(made.remainingBytes());
        return made;
    }

    static Outgoing trailers(NativeConnection connection, StreamFlow flow, Metadata trailers) {
        return new Outgoing(connection, flow, null, true, trailers, 0);
    }

    /** How many bytes are still to be sent. */
    int remainingBytes() {
        return buffer == null ? 0 : buffer.readableBytes();
    }

    /** Drops what has not been sent. */
    void release() {
        connection.unsent(-remainingBytes());
        if (buffer != null) {
            buffer.release();
        }
    }

    @Override
    public void run() {
        connection.send(this);
    }

    /** A status as the one byte of a RESET, which cannot be OK. */
    static int code(Status status) {
        return status.isOk() ? Status.Code.UNKNOWN.value() : status.getCode().value();
    }
}
