package org.verbena.grpc.internal.nativetransport;

import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.InternalMetadata;
import io.grpc.InternalStatus;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.internal.AbstractClientStream;
import io.grpc.internal.ClientStreamListener.RpcProgress;
import io.grpc.internal.GrpcUtil;
import io.grpc.internal.ReadableBuffer;
import io.grpc.internal.StatsTraceContext;
import io.grpc.internal.WritableBuffer;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;
import org.verbena.grpc.internal.wire.Fields;

/** A client's call. */
final class NativeClientStream extends AbstractClientStream {
    private final NativeClientTransport transport;
    private final State state;
    private final byte[] path;
    private final boolean onlyOneMessage;
    private final Sink sink = new ClientSink();
    private String authority;

    NativeClientStream(
            NativeClientTransport transport,
            MethodDescriptor<?, ?> method,
            Metadata headers,
            CallOptions callOptions,
            StatsTraceContext stats) {
        super(transport.buffers, stats, transport.tracer, headers, callOptions, false);
        this.transport = transport;
        authority = transport.authority();
        path = ("/" + method.getFullMethodName()).getBytes(StandardCharsets.UTF_8);
        onlyOneMessage = method.getType().clientSendsOneMessage();
        state = new State(transport, stats, callOptions, this);
    }

    @Override
    public void setAuthority(String authority) {
        this.authority = authority;
    }

    @Override
    public Attributes getAttributes() {
        return transport.getAttributes();
    }

    @Override
    protected State transportState() {
        return state;
    }

    @Override
    protected Sink abstractClientStreamSink() {
        return sink;
    }

    private void sending(int bytes) {
        onSendingBytes(bytes);
    }

    byte[] path() {
        return path;
    }

    byte[] authority() {
        return authority.getBytes(StandardCharsets.UTF_8);
    }

    /** Any thread. */
    private final class ClientSink implements Sink {
        @Override
        public void writeHeaders(Metadata headers, byte @Nullable [] payload) {
            headers.discardAll(GrpcUtil.CONTENT_TYPE_KEY);
            headers.discardAll(GrpcUtil.TE_HEADER);
            headers.discardAll(GrpcUtil.USER_AGENT_KEY);
            headers.put(GrpcUtil.USER_AGENT_KEY, transport.userAgent());
            state.headers = headers;
            transport.execute(() -> transport.open0(state), !onlyOneMessage);
        }

        @Override
        public void writeFrame(@Nullable WritableBuffer frame, boolean endOfStream, boolean flush, int messages) {
            if (frame != null) {
                sending(frame.readableBytes());
            }
            transport.execute(
                    Outgoing.data(
                            transport,
                            state.flow,
                            frame == null ? null : OutboundBuffer.of(frame),
                            endOfStream,
                            messages),
                    flush);
        }

        @Override
        public void cancel(Status reason) {
            transport.execute(() -> transport.cancel0(state, reason), true);
        }
    }

    /** Event loop only. */
    static final class State extends AbstractClientStream.TransportState implements StreamFlow.Owner {
        final StreamFlow flow = new StreamFlow(this);
        final NativeClientStream stream;
        private final NativeClientTransport transport;
        private final StatsTraceContext stats;

        /** Until they are sent. */
        @Nullable Metadata headers;

        /** It is over, for this end. */
        private boolean over;

        State(
                NativeClientTransport transport,
                StatsTraceContext stats,
                CallOptions callOptions,
                NativeClientStream stream) {
            super(transport.settings.maxMessageBytes, stats, transport.tracer, callOptions);
            this.transport = transport;
            this.stats = stats;
            this.stream = stream;
        }

        boolean isOver0() {
            return over;
        }

        void opened0() {
            stats.clientOutboundHeaders();
            getTransportTracer().reportLocalStreamStarted();
            onStreamAllocated();
        }

        void headersReceived0(Metadata received) {
            inboundHeadersReceived(received);
        }

        void dataReceived0(ReadableBuffer data) {
            inboundDataReceived(data);
        }

        void trailersReceived0(Metadata trailers) {
            Status status = trailers.get(InternalStatus.CODE_KEY);
            status = status == null
                    ? Status.UNKNOWN.withDescription("missing GRPC status in response")
                    : status.withDescription(trailers.get(InternalStatus.MESSAGE_KEY));
            trailers.discardAll(InternalStatus.CODE_KEY);
            trailers.discardAll(InternalStatus.MESSAGE_KEY);
            over = true;
            inboundTrailersReceived(trailers, status);
        }

        /** Ends it by this end's or the connection's reason. */
        void close0(Status status, RpcProgress progress, boolean stopsDelivery) {
            over = true;
            transportReportStatus(status, progress, stopsDelivery, new Metadata());
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
            transport.cancel0(this, Status.fromThrowable(cause));
        }

        @Override
        public void trailersSent() {
            throw new IllegalStateException("a client sends no trailers");
        }

        @Override
        public void lost(LostCall why) {
            if (!over) { // the program may have cancelled it as another call ended
                transport.left0(this);
                close0(why.status(), why.progress(), false);
            }
        }
    }

    /** Makes metadata of fields that are not longer than this end accepts. */
    static Metadata metadata(Fields fields) {
        return InternalMetadata.newMetadata(fields.count(), fields.namesAndValues());
    }
}
