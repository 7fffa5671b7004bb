package org.verbena.grpc.internal.nativetransport;

import com.google.common.base.Stopwatch;
import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.internal.ClientStream;
import io.grpc.internal.ClientStreamListener.RpcProgress;
import io.grpc.internal.ConnectionClientTransport;
import io.grpc.internal.GrpcAttributes;
import io.grpc.internal.GrpcUtil;
import io.grpc.internal.Http2Ping;
import io.grpc.internal.KeepAliveManager;
import io.grpc.internal.ReadableBuffer;
import io.grpc.internal.StatsTraceContext;
import io.grpc.internal.TransportTracer;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.grpc.internal.nativetransport.GrpcCore.Disconnect;
import org.verbena.grpc.internal.wire.Fields;
import org.verbena.grpc.internal.wire.GoAwayReason;
import org.verbena.grpc.internal.wire.ProtocolViolation;
import org.verbena.grpc.internal.wire.Settings;

/**
 * A client's connection.
 *
 * <pre>{@code
 * CONNECTING --SETTINGS--> READY --shutdown, GOAWAY, numbers used up--> DRAINING --last call ended--> ended
 *     |                      |                                             |
 *     +----------------------+-- shutdownNow, connection lost -------------+------------------------> ended
 * }</pre>
 */
final class NativeClientTransport extends NativeConnection implements ConnectionClientTransport {

    /** How long the server's SETTINGS may take once the channel is connected. */
    private static final int SETTINGS_SECONDS = 10;

    private final SocketAddress address;
    private final String authority;
    private final String userAgent;
    private final Attributes balancerAttributes;
    private final long keepAliveNanos;
    private final Runnable onTooManyPings;

    /** Calls that wait for SETTINGS, or for another to end. */
    private final LinkedHashSet<NativeClientStream.State> waiting = new LinkedHashSet<>();

    /** The loop sets it before it reports to gRPC that the transport is ready. */
    private volatile Attributes attributes;

    /** Set by {@link #start}. */
    @SuppressWarnings("NullAway.Init")
    private Listener listener;

    // Event loop only.

    /** The number of the last call that was opened. Tests set it. */
    int lastStream;

    private int countedCalls;
    private boolean ready;
    private boolean inUse;
    private boolean peerLeaves;
    private boolean goAwaySent;
    private boolean closes;
    private @Nullable Status shutdownStatus;
    private @Nullable Http2Ping ping;
    private long pings;
    private @Nullable Future<?> settingsLimit;

    NativeClientTransport(
            SocketAddress address,
            String authority,
            @Nullable String userAgent,
            Attributes balancerAttributes,
            NativeSettings settings,
            long keepAliveNanos,
            Runnable onTooManyPings) {
        super(settings, TransportTracer.getDefaultFactory().create(), address.toString());
        this.address = address;
        this.authority = authority;
        this.userAgent = GrpcUtil.getGrpcUserAgent("verbena", userAgent);
        this.balancerAttributes = balancerAttributes;
        this.keepAliveNanos = keepAliveNanos;
        this.onTooManyPings = onTooManyPings;
        attributes = Attributes.newBuilder()
                .set(GrpcAttributes.ATTR_CLIENT_EAG_ATTRS, balancerAttributes)
                .build();
    }

    String authority() {
        return authority;
    }

    String userAgent() {
        return userAgent;
    }

    /**
     * Connects.
     *
     * @param to gets what happens
     * @param loop of the channel
     */
    @Nullable Runnable start(Listener to, EventLoop loop) {
        listener = to;
        Bootstrap bootstrap =
                new Bootstrap().group(loop).channel(RdmaChannel.class).handler(this);
        settings.options().forEach((option, value) -> set(bootstrap, option, value));
        if (settings.keepAliveNanos != NativeSettings.NEVER) {
            keepAlive = new KeepAliveManager(
                    pinger(), loop, keepAliveNanos, settings.keepAliveTimeoutNanos, settings.keepAliveWithoutCalls);
        }
        ChannelFuture registered = bootstrap.register();
        channel(registered.channel(), loop);
        registered.addListener(done -> {
            if (!done.isSuccess()) {
                end0( // its loop has ended, so nothing else can run
                        Status.UNAVAILABLE
                                .withDescription("no channel to " + address)
                                .withCause(done.cause()),
                        null);
                return;
            }
            channel().connect(address).addListener(connected -> {
                if (!connected.isSuccess()) {
                    end0(
                            Status.UNAVAILABLE
                                    .withDescription("no native connection to " + address)
                                    .withCause(connected.cause()),
                            null);
                }
            });
        });
        return null;
    }

    @SuppressWarnings("unchecked") // the value was given with its option
    private static void set(Bootstrap bootstrap, ChannelOption<?> option, Object value) {
        bootstrap.option((ChannelOption<Object>) option, value);
    }

    /** Never called: the factory has the loop. */
    @Override
    public @Nullable Runnable start(Listener to) {
        throw new UnsupportedOperationException("a native transport needs a loop");
    }

    @Override
    public Attributes getAttributes() {
        return attributes;
    }

    @Override
    public ClientStream newStream(
            MethodDescriptor<?, ?> method, Metadata headers, CallOptions callOptions, ClientStreamTracer[] tracers) {
        StatsTraceContext stats = StatsTraceContext.newClientContext(tracers, getAttributes(), headers);
        return new NativeClientStream(this, method, headers, callOptions, stats);
    }

    @Override
    public void ping(PingCallback callback, Executor executor) {
        execute(() -> ping0(callback, executor), true);
    }

    private void ping0(PingCallback callback, Executor executor) {
        if (isEnded0()) {
            Http2Ping.notifyFailed(callback, executor, Objects.requireNonNull(shutdownStatus));
            return;
        }
        Http2Ping asked = ping;
        if (asked == null) {
            pings++;
            asked = new Http2Ping(pings, Stopwatch.createStarted());
            ping = asked;
            if (ready) {
                writePing0(pings);
                tracer.reportKeepAliveSent();
            }
        }
        asked.addCallback(callback, executor);
    }

    @Override
    void ponged0(long nonce) {
        Http2Ping asked = ping;
        if (asked != null && asked.payload() == nonce) {
            ping = null;
            asked.complete();
        }
    }

    @Override
    public void shutdown(Status reason) {
        execute(() -> drain0(reason, Disconnect.SHUTDOWN), true);
    }

    @Override
    public void shutdownNow(Status reason) {
        execute(() -> shutdownNow0(reason, Disconnect.SHUTDOWN), true);
    }

    private void shutdownNow0(Status reason, Disconnect why) {
        drain0(reason, why);
        end0(reason, null);
    }

    @Override
    void pingTimedOut0(Status status) {
        shutdownNow0(status, Disconnect.TIMED_OUT);
    }

    /** Opens no more calls. */
    private void drain0(Status reason, Disconnect why) {
        if (shutdownStatus == null) {
            shutdownStatus = reason;
            because0(reason);
            GrpcCore.transportShutdown(listener, reason, why);
        }
        if (waiting.isEmpty()) {
            sayGoAway0();
        }
    }

    /** The server may close when it knows that no call follows. */
    private void sayGoAway0() {
        if (ready && !goAwaySent && !isEnded0()) {
            goAwaySent = true;
            writeGoAway0(0, GoAwayReason.GRACEFUL, "");
        }
    }

    // ---- calls

    void open0(NativeClientStream.State call) {
        if (shutdownStatus != null) {
            // gRPC makes it again elsewhere: nothing of it was sent.
            call.close0(shutdownStatus, RpcProgress.MISCARRIED, true);
            call.flow.removed = true;
            return;
        }
        if (call.stream.shouldBeCountedForInUse()) {
            countedCalls++;
        }
        waiting.add(call);
        openWaiting0();
        inUse0();
    }

    private void openWaiting0() {
        Settings peer = peerSettings();
        while (ready && peer != null && !peerLeaves && streams.size() < peer.maxStreams() && !waiting.isEmpty()) {
            begin0(waiting.removeFirst());
        }
        if (shutdownStatus != null && waiting.isEmpty()) {
            sayGoAway0();
        }
    }

    private void begin0(NativeClientStream.State call) {
        if (lastStream == Integer.MAX_VALUE) {
            Status usedUp = Status.UNAVAILABLE.withDescription("the connection's numbers are used up");
            waiting.addFirst(call);
            drain0(usedUp, Disconnect.UNKNOWN);
            loseWaiting0(usedUp);
            return;
        }
        Metadata headers = Objects.requireNonNull(call.headers);
        call.headers = null;
        int id = lastStream + 1;
        if (!writeFields0(false, id, false, headers, call.stream.path(), call.stream.authority())) {
            left0(call);
            call.flow.removed = true;
            call.flow.releasePending();
            call.close0(
                    Status.RESOURCE_EXHAUSTED.withDescription("metadata that is too long to be sent"),
                    RpcProgress.PROCESSED,
                    true);
            return;
        }
        lastStream = id;
        add0(call.flow, id);
        call.opened0();
        turns.pump0(call.flow);
    }

    void cancel0(NativeClientStream.State call, Status reason) {
        if (call.isOver0()) {
            call.close0(reason, RpcProgress.PROCESSED, true); // stops messages that were not delivered yet
            return;
        }
        boolean begun = call.flow.id != 0 && !call.flow.removed;
        if (begun) {
            writeReset0(call.flow.id, false, reason);
            remove0(call.flow);
        } else if (!call.flow.removed) {
            waiting.remove(call);
            call.flow.removed = true;
            call.flow.releasePending();
        }
        left0(call);
        call.close0(reason, RpcProgress.PROCESSED, true);
        openWaiting0();
    }

    /** A call that was taken has ended. */
    void left0(NativeClientStream.State call) {
        if (call.stream.shouldBeCountedForInUse()) {
            countedCalls--;
        }
    }

    private void inUse0() {
        boolean now = countedCalls > 0;
        if (now != inUse) {
            inUse = now;
            listener.transportInUse(now);
        }
    }

    // ---- frames

    @Override
    Settings announced() {
        return settings.announced(true);
    }

    @Override
    public void channelActive(ChannelHandlerContext active) {
        settingsLimit = active.executor()
                .schedule(
                        () -> end0(
                                Status.UNAVAILABLE.withDescription(
                                        address + " has sent no SETTINGS: it does not speak gRPC's native transport"),
                                null),
                        SETTINGS_SECONDS,
                        TimeUnit.SECONDS);
        super.channelActive(active);
    }

    @Override
    void ready0(Settings peerSettings) {
        Future<?> limit = settingsLimit;
        if (limit != null) {
            limit.cancel(false);
        }
        ready = true;
        attributes = listener.filterTransport(attributes0()
                .set(GrpcAttributes.ATTR_CLIENT_EAG_ATTRS, balancerAttributes)
                .build());
        if (shutdownStatus == null) {
            listener.transportReady();
        } else if (waiting.isEmpty()) {
            sayGoAway0();
        }
        Http2Ping asked = ping;
        if (asked != null) {
            writePing0(asked.payload());
        }
        if (keepAlive != null) {
            keepAlive.onTransportStarted();
        }
        openWaiting0();
    }

    @Override
    void checkKnown(int stream) throws ProtocolViolation {
        if (stream > lastStream) {
            throw new ProtocolViolation("a frame of a call that was not opened");
        }
    }

    @Override
    public void onHeaders(int stream, boolean end, Fields fields) throws ProtocolViolation {
        NativeClientStream.State call = call0(stream);
        if (call == null) {
            return;
        }
        if (call.flow.headersReceived) {
            throw new ProtocolViolation("HEADERS twice for a call");
        }
        call.flow.headersReceived = true;
        if (fields.isTooLarge()) {
            cancel0(call, tooLarge("response headers", fields));
        } else {
            call.headersReceived0(NativeClientStream.metadata(fields));
        }
    }

    private Status tooLarge(String what, Fields fields) {
        return Status.RESOURCE_EXHAUSTED.withDescription(
                what + " of " + fields.sizeBytes() + " bytes exceed maxInboundMetadataSize " + settings.maxFieldsBytes);
    }

    @Override
    void data0(StreamFlow flow, ReadableBuffer data, boolean end) {
        ((NativeClientStream.State) flow.owner).dataReceived0(data);
    }

    @Override
    public void onTrailers(int stream, Fields fields) throws ProtocolViolation {
        NativeClientStream.State call = call0(stream);
        if (call == null) {
            return;
        }
        remove0(call.flow);
        left0(call);
        if (fields.isTooLarge()) {
            call.close0(tooLarge("trailers", fields), RpcProgress.PROCESSED, false);
        } else {
            call.trailersReceived0(NativeClientStream.metadata(fields));
        }
        openWaiting0();
    }

    @Override
    public void onReset(int stream, boolean notProcessed, int status, String text) throws ProtocolViolation {
        NativeClientStream.State call = call0(stream);
        if (call != null) {
            remove0(call.flow);
            RpcProgress progress = notProcessed ? RpcProgress.REFUSED : RpcProgress.PROCESSED;
            call.lost(new LostCall(Status.fromCodeValue(status).withDescription(text), progress));
            openWaiting0();
        }
    }

    private NativeClientStream.@Nullable State call0(int stream) throws ProtocolViolation {
        StreamFlow flow = streams.get(stream);
        if (flow == null) {
            checkKnown(stream); // it has ended here
            return null;
        }
        return (NativeClientStream.State) flow.owner;
    }

    @Override
    public void onGoAway(int lastOfServer, GoAwayReason reason, String text) {
        Status status = switch (reason) {
            case TOO_MANY_PINGS -> Status.RESOURCE_EXHAUSTED.withDescription("too many pings: " + text);
            case TOO_MANY_RESETS -> Status.RESOURCE_EXHAUSTED.withDescription("too many resets: " + text);
            case GRACEFUL -> Status.UNAVAILABLE.withDescription("the server is going away: " + text);
            case VIOLATION -> Status.INTERNAL.withDescription("the server ends the connection: " + text);
        };
        if (reason == GoAwayReason.TOO_MANY_PINGS) {
            onTooManyPings.run();
        }
        peerLeaves = true;
        drain0(status, Disconnect.UNKNOWN); // before calls end: those that they begin then go elsewhere
        LostCall refused = new LostCall(status, RpcProgress.REFUSED);
        for (StreamFlow flow : new ArrayList<>(streams.values())) {
            if (flow.id > lastOfServer) {
                remove0(flow);
                flow.owner.lost(refused);
            }
        }
        loseWaiting0(status);
        sayGoAway0();
    }

    /** Calls of which nothing was sent. */
    private void loseWaiting0(Status status) {
        LostCall unsent = new LostCall(status, RpcProgress.MISCARRIED);
        while (!waiting.isEmpty()) {
            NativeClientStream.State call = waiting.removeFirst();
            call.flow.removed = true;
            call.flow.releasePending();
            call.lost(unsent);
        }
    }

    // ---- end

    @Override
    void roundEnded0(boolean calls) {
        inUse0();
        if (!calls && shutdownStatus != null && waiting.isEmpty() && !closes) {
            closes = true;
            channel().close();
        }
    }

    @Override
    void ending0(Status status) {
        drain0(status, Disconnect.UNKNOWN);
    }

    @Override
    void ended0(Status status) {
        Future<?> limit = settingsLimit;
        if (limit != null) {
            limit.cancel(false);
        }
        drain0(status, Disconnect.UNKNOWN);
        loseWaiting0(status);
        Http2Ping asked = ping;
        if (asked != null) {
            ping = null;
            asked.failed(status);
        }
        inUse0();
        // Terminated means that nothing of it is left.
        channel().closeFuture().addListener(closed -> listener.transportTerminated());
    }
}
