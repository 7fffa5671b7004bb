package org.verbena.grpc.internal.nativetransport;

import io.grpc.Attributes;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.internal.AbstractServerStream;
import io.grpc.internal.GrpcUtil;
import io.grpc.internal.ReadableBuffer;
import io.grpc.internal.StatsTraceContext;
import io.grpc.internal.WritableBuffer;
import org.jspecify.annotations.Nullable;

/** A server's call. */
final class NativeServerStream extends AbstractServerStream {
    private final NativeServerTransport transport;
    private final State state;
    private final @Nullable String authority;
    private final Sink sink = new ServerSink();

    NativeServerStream(NativeServerTransport transport, @Nullable String authority, StatsTraceContext stats) {
        super(transport.buffers, stats);
        this.transport = transport;
        this.authority = authority;
        state = new State(transport, stats);
    }

    @Override
    protected State transportState() {
        return state;
    }

    @Override
    protected Sink abstractServerStreamSink() {
        return sink;
    }

    @Override
    public int streamId() {
        return state.flow.id;
    }

    @Override
    public Attributes getAttributes() {
        return transport.attributes();
    }

    @Override
    public @Nullable String getAuthority() {
        return authority;
    }

    private void sending(int bytes) {
        onSendingBytes(bytes);
    }

    /** Any thread. */
    private final class ServerSink implements Sink {
        /** Bytes of a message that gRPC has not counted yet, or of the rest of one: a message is taken as a whole. */
        private long partBytes;

        @Override
        public void writeHeaders(Metadata headers, boolean flush) {
            discardReserved(headers);
            transport.execute(() -> transport.writeHeaders0(state, headers), flush);
        }

        @Override
        public void writeFrame(WritableBuffer frame, boolean flush, int messages) {
            OutboundBuffer answer = OutboundBuffer.of(frame);
            if (messages == 0) {
                partBytes += answer.readableBytes();
            } else if (transport.takesAnswer(partBytes)) {
                partBytes = 0;
            } else {
                answer.release();
                transport.execute(() -> transport.unread0(state), true);
                return;
            }
            sending(answer.readableBytes());
            transport.execute(Outgoing.data(transport, state.flow, answer, false, messages), flush);
        }

        @Override
        public void writeTrailers(Metadata trailers, boolean headersSent, Status status) {
            discardReserved(trailers);
            transport.execute(Outgoing.trailers(transport, state.flow, trailers), true);
        }

        @Override
        public void cancel(Status status) {
            transport.execute(() -> transport.cancel0(state, status), true);
        }

        private static void discardReserved(Metadata metadata) {
            metadata.discardAll(GrpcUtil.CONTENT_TYPE_KEY);
            metadata.discardAll(GrpcUtil.TE_HEADER);
            metadata.discardAll(GrpcUtil.USER_AGENT_KEY);
        }
    }

    /** Event loop only. */
    static final class State extends AbstractServerStream.TransportState implements StreamFlow.Owner {
        final StreamFlow flow = new StreamFlow(this);
        private final NativeServerTransport transport;

        State(NativeServerTransport transport, StatsTraceContext stats) {
            super(transport.settings.maxMessageBytes, stats, transport.tracer);
            this.transport = transport;
        }

        /** Ends a call which gRPC's server could not begin, and of which it may know nothing. */
        void failedToBegin0(Status status) {
            if (listener() != null) {
                transportReportStatus(status);
            }
        }

        void dataReceived0(ReadableBuffer data, boolean end) {
            inboundDataReceived(data, end);
        }

        @Override
        public void runOnTransportThread(Runnable task) {
            transport.execute(task, true);
        }

        @Override
        public void bytesRead(int bytes) {
            transport.consumed0(flow, bytes);
        }

        @Override
        public void deframeFailed(Throwable cause) {
            transport.malformed0(this, Status.fromThrowable(cause));
        }

        @Override
        public void trailersSent() {
            transport.answered0();
            complete();
        }

        @Override
        public void lost(LostCall why) {
            transportReportStatus(why.status());
        }
    }
}
