package org.verbena.grpc.internal.nativetransport;

import io.grpc.Attributes;
import io.grpc.InternalMetadata;
import io.grpc.InternalStatus;
import io.grpc.Metadata;
import io.grpc.ServerStreamTracer;
import io.grpc.Status;
import io.grpc.internal.KeepAliveEnforcer;
import io.grpc.internal.KeepAliveManager;
import io.grpc.internal.MaxConnectionIdleManager;
import io.grpc.internal.ReadableBuffer;
import io.grpc.internal.ReadableBuffers;
import io.grpc.internal.ServerTransport;
import io.grpc.internal.ServerTransportListener;
import io.grpc.internal.StatsTraceContext;
import io.grpc.internal.TransportTracer;
import io.netty.channel.ChannelHandlerContext;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.grpc.internal.wire.Fields;
import org.verbena.grpc.internal.wire.GoAwayReason;
import org.verbena.grpc.internal.wire.ProtocolViolation;
import org.verbena.grpc.internal.wire.Settings;

/**
 * A server's connection.
 *
 * <pre>{@code
 * HANDSHAKE --SETTINGS--> READY --shutdown, max age, idle--> DRAINING --GOAWAY or time, last call ended--> ended
 *     |                     |                                   |
 *     +---------------------+-- shutdownNow, violation, lost ---+-----------------------------------------> ended
 * }</pre>
 *
 * <p>A server that drains says GOAWAY and takes the calls that were under way. The client's GOAWAY says that no call
 * follows. Where it does not come in time, another GOAWAY names the last call that was begun, and later ones are
 * refused as not processed.
 */
final class NativeServerTransport extends NativeConnection implements ServerTransport {
    private static final Logger LOG = LoggerFactory.getLogger(NativeServerTransport.class);

    /**
     * In this time twice as many of a client's calls as it may have open, or {@link #MIN_RESETS}, may end badly, and
     * one more for each that was answered.
     */
    private static final long RESETS_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final int MIN_RESETS = 200;

    private static final Status UNREAD =
            Status.RESOURCE_EXHAUSTED.withDescription("too many bytes of answers wait for this client to read them");

    /** How many bytes of answers wait for the clients of all servers of this process. */
    static final AtomicLong ALL_UNSENT_BYTES = new AtomicLong();

    private final NativeServer server;
    private final List<? extends ServerStreamTracer.Factory> tracers;
    private final KeepAliveEnforcer enforcer;
    private final List<Future<?>> timers = new ArrayList<>(0);
    private final @Nullable MaxConnectionIdleManager idleLimit;

    /** Written by the loop before a call begins. */
    private volatile Attributes attributes = Attributes.EMPTY;

    /** How many bytes of answers wait for this client. Any thread. */
    private final AtomicLong unsentBytes = new AtomicLong();

    // Event loop only.
    private @Nullable ServerTransportListener listener;
    private int lastStream;
    private boolean ready;
    private boolean draining;
    private boolean clientLeaves;
    private boolean refuses;
    private boolean closes;
    private long resetsSinceNanos;
    private int resets;

    NativeServerTransport(
            NativeServer server,
            List<? extends ServerStreamTracer.Factory> tracers,
            NativeSettings settings,
            String peer) {
        super(settings, TransportTracer.getDefaultFactory().create(), peer);
        this.server = server;
        this.tracers = tracers;
        enforcer = new KeepAliveEnforcer(
                settings.permitKeepAliveWithoutCalls, settings.permitKeepAliveNanos, TimeUnit.NANOSECONDS);
        idleLimit = settings.maxIdleNanos == NativeSettings.NEVER
                ? null
                : new MaxConnectionIdleManager(settings.maxIdleNanos);
    }

    Attributes attributes() {
        return attributes;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext added) {
        super.handlerAdded(added);
        listener = server.created(this);
        if (listener == null) {
            channel().close(); // it came while the server was shutting down
        }
    }

    @Override
    public ScheduledExecutorService getScheduledExecutorService() {
        return loop();
    }

    @Override
    public void shutdown() {
        execute(() -> drain0("the server is shutting down"), true);
    }

    @Override
    public void shutdownNow(Status reason) {
        execute(() -> end0(reason, ready ? GoAwayReason.GRACEFUL : null), true);
    }

    /** Takes what is under way, and ends. */
    private void drain0(String why) {
        if (draining || isEnded0()) {
            return;
        }
        draining = true;
        if (ready) {
            writeGoAway0(Integer.MAX_VALUE, GoAwayReason.GRACEFUL, why);
            later0(settings.goAwayNanos, () -> {
                if (!clientLeaves) {
                    refuses = true;
                    writeGoAway0(lastStream, GoAwayReason.GRACEFUL, why);
                    finish0();
                }
            });
        }
    }

    private void later0(long nanos, Runnable task) {
        timers.add(loop().schedule(task, nanos, TimeUnit.NANOSECONDS));
    }

    // ---- frames

    @Override
    Settings announced() {
        return settings.announced(false);
    }

    @Override
    void ready0(Settings peerSettings) {
        ready = true;
        attributes = listener().transportReady(attributes0().build());
        if (settings.keepAliveNanos != NativeSettings.NEVER) {
            keepAlive = new KeepAliveManager(
                    pinger(), loop(), settings.keepAliveNanos, settings.keepAliveTimeoutNanos, true);
            keepAlive.onTransportStarted();
        }
        if (idleLimit != null) {
            idleLimit.start(() -> execute(() -> drain0("max_idle"), true), loop());
        }
        if (settings.maxAgeNanos != NativeSettings.NEVER) {
            // Connections that began together do not end together.
            double spread = 0.9 + 0.2 * ThreadLocalRandom.current().nextDouble();
            later0((long) (settings.maxAgeNanos * spread), this::grownOld0);
        }
    }

    private void grownOld0() {
        drain0("max_age");
        finish0();
        if (settings.maxAgeGraceNanos != NativeSettings.NEVER) {
            later0(
                    settings.maxAgeGraceNanos,
                    () -> end0(
                            Status.UNAVAILABLE.withDescription("the connection's grace is over"),
                            GoAwayReason.GRACEFUL));
        }
    }

    private ServerTransportListener listener() {
        return Objects.requireNonNull(listener);
    }

    @Override
    void checkKnown(int stream) throws ProtocolViolation {
        if (stream > lastStream) {
            throw new ProtocolViolation("a frame of a call that was not opened");
        }
    }

    @Override
    int lastProcessed0() {
        return lastStream;
    }

    @Override
    public void onHeaders(int stream, boolean end, Fields fields) throws ProtocolViolation {
        if (stream <= lastStream) {
            throw new ProtocolViolation("HEADERS of a call that has been opened before");
        }
        if (clientLeaves) {
            throw new ProtocolViolation("a call behind GOAWAY");
        }
        if (isEnded0()) {
            return; // by an earlier frame of this message
        }
        lastStream = stream;
        String path = fields.path();
        if (refuses) {
            refuse0(stream, true, Status.UNAVAILABLE.withDescription("the server is going away"));
        } else if (streams.size() >= settings.maxStreams) {
            refuse0(stream, true, Status.UNAVAILABLE.withDescription("more calls at once than announced"));
        } else if (!takesAnswer(0)) {
            refuse0(stream, true, UNREAD);
        } else if (fields.isTooLarge()) {
            refuse0(
                    stream,
                    false,
                    Status.RESOURCE_EXHAUSTED.withDescription("request headers of " + fields.sizeBytes()
                            + " bytes exceed maxInboundMetadataSize " + settings.maxFieldsBytes));
        } else if (path == null || path.isEmpty() || path.charAt(0) != '/') {
            refuse0(stream, false, Status.UNIMPLEMENTED.withDescription("no method is named"));
        } else {
            begin0(stream, end, path.substring(1), fields);
        }
    }

    private void begin0(int stream, boolean end, String method, Fields fields) {
        Metadata headers = InternalMetadata.newMetadata(fields.count(), fields.namesAndValues());
        StatsTraceContext stats;
        try {
            stats = StatsTraceContext.newServerContext(tracers, method, headers);
        } catch (RuntimeException | Error failure) {
            cannotBegin0(stream, failure);
            return;
        }
        NativeServerStream call = new NativeServerStream(this, fields.authority(), stats);
        NativeServerStream.State state = call.transportState();
        state.flow.headersReceived = true;
        state.flow.inboundEnded = end;
        add0(state.flow, stream);
        try {
            listener().streamCreated(call, method, headers);
            state.onStreamAllocated();
        } catch (RuntimeException | Error failure) {
            Status status = cannotBegin0(stream, failure);
            remove0(state.flow);
            state.failedToBegin0(status);
        }
        if (end && !state.flow.removed) {
            state.dataReceived0(ReadableBuffers.empty(), true);
        }
    }

    /** Resets a call of the client, which can open others without limit. */
    private void refuse0(int stream, boolean notProcessed, Status status) {
        countAnswer0();
        writeReset0(stream, notProcessed, status);
    }

    /** What begins a call, gRPC or a tracer of the program, failed because of malformed metadata or a defect. */
    private Status cannotBegin0(int stream, Throwable failure) {
        if (failure instanceof IllegalArgumentException) {
            LOG.debug("{}: metadata of a call are malformed", this, failure); // any client can send them
        } else {
            LOG.warn("{}: a call cannot begin", this, failure);
        }
        Status status = Status.INTERNAL
                .withDescription("the server cannot begin the call")
                .withCause(failure);
        refuse0(stream, false, status);
        return status;
    }

    @Override
    void data0(StreamFlow flow, ReadableBuffer data, boolean end) {
        ((NativeServerStream.State) flow.owner).dataReceived0(data, end);
    }

    @Override
    public void onTrailers(int stream, Fields fields) throws ProtocolViolation {
        throw new ProtocolViolation("TRAILERS of a client");
    }

    @Override
    public void onReset(int stream, boolean notProcessed, int status, String text) throws ProtocolViolation {
        checkKnown(stream);
        StreamFlow flow = streams.get(stream);
        if (flow != null) {
            countReset0();
            remove0(flow);
            ((NativeServerStream.State) flow.owner)
                    .transportReportStatus(Status.CANCELLED.withDescription("the client cancelled: " + text));
        }
    }

    /** A client that opens calls, and cancels them or lets them fail, makes a server work for nothing. */
    private void countReset0() {
        long now = System.nanoTime();
        if (resets == 0 || now - resetsSinceNanos > RESETS_NANOS) {
            resetsSinceNanos = now;
            resets = 0;
        }
        resets++;
        if (resets > Math.max(MIN_RESETS, 2L * settings.maxStreams)) {
            end0(Status.RESOURCE_EXHAUSTED.withDescription("too many cancelled calls"), GoAwayReason.TOO_MANY_RESETS);
        }
    }

    /** An answered call makes up for another that was cancelled: deadlines of a busy client are no attack. */
    void answered0() {
        if (resets > 0) {
            resets--;
        }
    }

    @Override
    public void onGoAway(int lastOfClient, GoAwayReason reason, String text) {
        clientLeaves = true;
        draining = true;
    }

    @Override
    void pinged0() {
        if (!enforcer.pingAcceptable()) {
            end0(Status.RESOURCE_EXHAUSTED.withDescription("too_many_pings"), GoAwayReason.TOO_MANY_PINGS);
        }
    }

    @Override
    void ponged0(long nonce) {
        // Any frame shows that the client is there.
    }

    @Override
    void pingTimedOut0(Status status) {
        end0(status, null);
    }

    @Override
    void sending0() {
        enforcer.resetCounters();
    }

    // ---- calls

    @Override
    void unsent(int bytes) {
        unsentBytes.addAndGet(bytes);
        ALL_UNSENT_BYTES.addAndGet(bytes);
    }

    /**
     * Whether one more answer may wait for this client: the first, or as long as those that wait are less than half of
     * what is still free, so that no client uses up what all share. To stop reading instead would be no cure, since
     * what the client reads it says by the same connection.
     *
     * @param partBytes of the answer itself, which wait already
     */
    boolean takesAnswer(long partBytes) {
        long own = unsentBytes.get() - partBytes;
        return own <= 0 || own < (settings.maxUnsentBytes - ALL_UNSENT_BYTES.get()) / 2;
    }

    /** Ends a call whose answer cannot wait. */
    void unread0(NativeServerStream.State call) {
        fail0(call, UNREAD);
    }

    void writeHeaders0(NativeServerStream.State call, Metadata headers) {
        if (call.flow.removed) {
            return;
        }
        countAnswer0(); // they stay in the channel if the client resets the call
        if (!writeFields0(false, call.flow.id, false, headers, null, null)) {
            fail0(call, Status.RESOURCE_EXHAUSTED.withDescription("response headers that are too long to be sent"));
        }
    }

    /**
     * Ends a call by the program's wish, or at its deadline. The client's deadline has passed as well then, and gRPC
     * makes its own words of a cancelled call, whether or not the client's timer was sooner.
     */
    void cancel0(NativeServerStream.State call, Status status) {
        if (!call.flow.removed) {
            boolean isLate = status.getCode() == Status.Code.DEADLINE_EXCEEDED;
            refuse0(call.flow.id, false, isLate ? Status.CANCELLED : status);
            remove0(call.flow);
        }
        call.transportReportStatus(status);
    }

    /** Ends a call whose client sends what is no message of gRPC. It costs as much as one that the client cancels. */
    void malformed0(NativeServerStream.State call, Status status) {
        fail0(call, status);
        countReset0();
    }

    /** Ends a call for a failure of the transport, which its client learns. */
    private void fail0(NativeServerStream.State call, Status status) {
        if (!call.flow.removed) {
            Metadata trailers = new Metadata();
            trailers.put(InternalStatus.CODE_KEY, status);
            if (status.getDescription() != null) {
                trailers.put(InternalStatus.MESSAGE_KEY, status.getDescription());
            }
            countAnswer0();
            writeFields0(true, call.flow.id, true, trailers, null, null);
            remove0(call.flow);
        }
        call.transportReportStatus(status);
    }

    @Override
    void active0(boolean calls) {
        super.active0(calls);
        if (calls) {
            enforcer.onTransportActive();
        } else {
            enforcer.onTransportIdle();
        }
        if (idleLimit != null && calls) {
            idleLimit.onTransportActive();
        } else if (idleLimit != null) {
            idleLimit.onTransportIdle();
        }
    }

    // ---- end

    @Override
    void roundEnded0(boolean calls) {
        if (!calls && draining && (clientLeaves || refuses || !ready) && !closes) {
            closes = true;
            channel().close();
        }
    }

    @Override
    void ended0(Status status) {
        timers.forEach(timer -> timer.cancel(false));
        if (idleLimit != null) {
            idleLimit.onTransportTermination();
        }
        ServerTransportListener to = listener;
        if (to != null) {
            channel().closeFuture().addListener(closed -> to.transportTerminated());
        }
    }
}
