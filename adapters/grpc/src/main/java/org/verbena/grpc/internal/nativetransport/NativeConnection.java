package org.verbena.grpc.internal.nativetransport;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.common.util.concurrent.SettableFuture;
import io.grpc.Attributes;
import io.grpc.Grpc;
import io.grpc.InternalChannelz.SocketOptions;
import io.grpc.InternalChannelz.SocketStats;
import io.grpc.InternalLogId;
import io.grpc.InternalMetadata;
import io.grpc.Metadata;
import io.grpc.SecurityLevel;
import io.grpc.Status;
import io.grpc.internal.ClientStreamListener.RpcProgress;
import io.grpc.internal.GrpcAttributes;
import io.grpc.internal.KeepAliveManager;
import io.grpc.internal.KeepAliveManager.KeepAlivePinger;
import io.grpc.internal.ReadableBuffer;
import io.grpc.internal.TransportTracer;
import io.grpc.internal.WritableBufferAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.collection.IntObjectHashMap;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.Carrier;
import org.verbena.grpc.internal.wire.FieldWriter;
import org.verbena.grpc.internal.wire.Fields;
import org.verbena.grpc.internal.wire.FrameListener;
import org.verbena.grpc.internal.wire.FrameReader;
import org.verbena.grpc.internal.wire.Frames;
import org.verbena.grpc.internal.wire.GoAwayReason;
import org.verbena.grpc.internal.wire.ProtocolViolation;
import org.verbena.grpc.internal.wire.Settings;

/**
 * One end of a connection: its calls, their credit, and what they send. Calls come from any thread and are handed over
 * as commands; all else happens on the channel's event loop. Frames of one round are collected and sent as one message;
 * a long payload is a message of its own. Callbacks to gRPC run when a round's state is complete.
 */
abstract class NativeConnection extends ChannelInboundHandlerAdapter implements FrameListener {
    private static final Logger LOG = LoggerFactory.getLogger(NativeConnection.class);

    /** Frames of a round are collected up to this: with its header it fits the smallest usual receive. */
    private static final int BATCH_BYTES = 8 << 10;

    /** How many answers may wait for a peer that asks and does not read. */
    private static final int MAX_UNREAD_ANSWERS = 10_000;

    private static final byte[] PATH = Fields.PATH.getBytes(StandardCharsets.US_ASCII);
    private static final byte[] AUTHORITY = Fields.AUTHORITY.getBytes(StandardCharsets.US_ASCII);

    final NativeSettings settings;
    final TransportTracer tracer;
    final InternalLogId logId;
    final WritableBufferAllocator buffers =
            OutboundBuffer.allocator(() -> channel().alloc());

    /** Calls that have begun and not ended, by number. Event loop only, as are all fields below that say nothing. */
    final IntObjectHashMap<StreamFlow> streams = new IntObjectHashMap<>();

    /** From any thread. */
    private final Queue<Runnable> commands = new ConcurrentLinkedQueue<>();

    private final AtomicBoolean scheduled = new AtomicBoolean();
    private final Runnable drain = this::drain0;

    private final FrameReader reader;
    private final InboundPayloads payloads = new InboundPayloads();
    private final FieldWriter fieldWriter = new FieldWriter();

    final SendTurns turns = new SendTurns(() -> channel().isWritable(), this::sendOne0);

    /** Calls with something to report at the end of the round. */
    private final ArrayDeque<StreamFlow> toReport = new ArrayDeque<>();

    /** Set before any other thread sees this. */
    private @Nullable Channel channel;

    /** Set with the channel. */
    private @Nullable EventLoop loop;

    private @Nullable ChannelHandlerContext context;
    private @Nullable ByteBuf batch;
    private @Nullable Settings peer;

    /** Why it ends; the first reason counts. */
    private @Nullable Status endStatus;

    @Nullable KeepAliveManager keepAlive;

    private int unreadAnswers;
    private boolean reading;
    private boolean draining;
    private boolean finishing;
    private boolean finishAgain;
    private boolean active;
    private boolean ended;

    NativeConnection(NativeSettings settings, TransportTracer tracer, String peer) {
        this.settings = settings;
        this.tracer = tracer;
        logId = InternalLogId.allocate(getClass(), peer);
        reader = new FrameReader(settings.maxFieldsBytes);
    }

    // ---- what the two ends do differently

    /** What this end announces. */
    abstract Settings announced();

    /** The peer's SETTINGS are here. */
    abstract void ready0(Settings peerSettings);

    /** Fails if the peer speaks of a call that cannot have been. */
    abstract void checkKnown(int stream) throws ProtocolViolation;

    /** DATA of a call. */
    abstract void data0(StreamFlow flow, ReadableBuffer data, boolean end);

    /** The first call has begun, or the last has ended. */
    void active0(boolean calls) {
        KeepAliveManager pings = keepAlive;
        if (pings != null && calls) {
            pings.onTransportActive();
        } else if (pings != null) {
            pings.onTransportIdle();
        }
    }

    /** A round has ended, with calls under way or without. */
    abstract void roundEnded0(boolean calls);

    /** The connection has ended. Called once. */
    abstract void ended0(Status status);

    /** The peer asks whether this end is there. */
    void pinged0() {}

    /** The answer to a PING. */
    abstract void ponged0(long nonce);

    /** The peer answers no PING. */
    abstract void pingTimedOut0(Status status);

    /** Something of a call is sent. */
    void sending0() {}

    /** So many bytes more wait to be sent, or fewer if negative. Any thread. */
    void unsent(int bytes) {}

    // ---- any thread

    /** The channel, from the beginning on. */
    final Channel channel() {
        return Objects.requireNonNull(channel);
    }

    final void channel(Channel made, EventLoop ofIt) {
        channel = made;
        loop = ofIt;
    }

    final EventLoop loop() {
        return Objects.requireNonNull(loop);
    }

    /**
     * Runs a command on the event loop, in the order of the calls of this method.
     *
     * @param flush false if another command follows at once, with which it may wait
     */
    final void execute(Runnable command, boolean flush) {
        EventLoop on = loop();
        if (on.inEventLoop() && commands.isEmpty()) {
            run0(command);
            if (!reading && !draining) {
                finish0();
            }
            return;
        }
        commands.add(command);
        if (flush && scheduled.compareAndSet(false, true)) {
            try {
                on.execute(drain);
            } catch (RejectedExecutionException gone) {
                LOG.trace("{}: its loop has ended", logId, gone);
                synchronized (commands) {
                    drain0(); // the connection has ended with its loop: fail the calls
                }
            } catch (Throwable failure) {
                scheduled.set(false); // the next command tries again
                throw failure;
            }
        }
    }

    final Attributes.Builder attributes0() {
        Carrier carrier = channel().attr(Carrier.ATTRIBUTE).get();
        Attributes.Builder attributes = Attributes.newBuilder()
                .set(Grpc.TRANSPORT_ATTR_REMOTE_ADDR, channel().remoteAddress())
                .set(Grpc.TRANSPORT_ATTR_LOCAL_ADDR, channel().localAddress())
                .set(GrpcAttributes.ATTR_SECURITY_LEVEL, SecurityLevel.NONE);
        if (carrier != null) {
            attributes.set(NativeAttributes.CARRIER, carrier);
        }
        return attributes;
    }

    /** Asks, for gRPC's keepalive, whether the peer is there; any of its frames shows it. */
    final KeepAlivePinger pinger() {
        return new KeepAlivePinger() {
            @Override
            public void ping() {
                execute(
                        () -> {
                            writePing0(0);
                            tracer.reportKeepAliveSent();
                        },
                        true);
            }

            @Override
            public void onPingTimeout() {
                execute(
                        () -> pingTimedOut0(
                                Status.UNAVAILABLE.withDescription("keepalive failed: the connection is likely gone")),
                        true);
            }
        };
    }

    /** See {@code InternalInstrumented}. */
    public final ListenableFuture<SocketStats> getStats() {
        SettableFuture<SocketStats> stats = SettableFuture.create();
        execute(
                () -> stats.set(new SocketStats(
                        tracer.getStats(), channel().localAddress(), channel().remoteAddress(), socketOptions(), null)),
                true);
        return stats;
    }

    /** What gRPC's channelz shows beside the counts: what the connection runs on, and each option of its channel. */
    private SocketOptions socketOptions() {
        SocketOptions.Builder shown = new SocketOptions.Builder();
        Carrier carrier = channel().attr(Carrier.ATTRIBUTE).get();
        if (carrier != null) {
            shown.addOption("carrier", carrier.toString());
        }
        channel()
                .config()
                .getOptions()
                .forEach((option, value) -> shown.addOption(option.name(), String.valueOf(value)));
        return shown.build();
    }

    /** See {@code InternalWithLogId}. */
    public final InternalLogId getLogId() {
        return logId;
    }

    @Override
    public final String toString() {
        return logId + " on " + channel;
    }

    // ---- rounds

    private void drain0() {
        scheduled.set(false); // what comes from now on schedules again
        draining = true;
        try {
            Runnable command = commands.poll();
            while (command != null) {
                run0(command);
                command = commands.poll();
            }
        } finally {
            draining = false;
        }
        finish0();
    }

    private void run0(Runnable command) {
        try {
            command.run();
        } catch (RuntimeException | Error failure) {
            broken0(failure);
        }
    }

    private void broken0(Throwable failure) {
        LOG.warn("{}: the connection ends", this, failure);
        end0(Status.INTERNAL.withDescription("a defect of this end").withCause(failure), null);
    }

    /** Ends a round: sends what was collected, and reports. */
    final void finish0() {
        if (finishing) {
            finishAgain = true;
            return;
        }
        finishing = true;
        try {
            do {
                finishAgain = false;
                flush0();
                report0();
            } while (finishAgain || !toReport.isEmpty() || batch != null);
        } finally {
            finishing = false;
        }
        boolean calls = !streams.isEmpty();
        if (calls != active) {
            active = calls;
            active0(calls);
        }
        roundEnded0(calls);
    }

    private void flush0() {
        writeBatch0();
        ChannelHandlerContext to = context;
        if (to != null && !ended) {
            to.flush();
        }
    }

    private void report0() {
        StreamFlow next = toReport.poll();
        while (next != null) {
            int sent = next.sentUnreported;
            boolean over = next.trailersUnreported;
            next.sentUnreported = 0;
            next.trailersUnreported = false;
            next.reporting = false;
            try {
                if (over) {
                    next.owner.trailersSent();
                } else if (!next.removed) {
                    next.owner.onSentBytes(sent);
                }
            } catch (RuntimeException | Error failure) {
                broken0(failure);
            }
            next = toReport.poll();
        }
    }

    // ---- sending

    /** Room for a frame behind those of this round. */
    private ByteBuf room0(int bytes) {
        ByteBuf open = batch;
        if (open != null && open.readableBytes() + bytes > BATCH_BYTES) {
            writeBatch0();
            open = null;
        }
        if (open == null) {
            open = channel().alloc().directBuffer(Math.max(BATCH_BYTES, bytes));
            batch = open;
        }
        return open;
    }

    private void writeBatch0() {
        ByteBuf full = batch;
        if (full != null) {
            batch = null;
            write0(full);
        }
    }

    private void write0(ByteBuf message) {
        ChannelHandlerContext to = context;
        if (to == null || ended) {
            message.release();
        } else {
            to.write(message, to.voidPromise());
        }
    }

    /**
     * Writes HEADERS or TRAILERS.
     *
     * @return false if they are too long to be sent; then nothing was written
     */
    final boolean writeFields0(
            boolean trailers,
            int stream,
            boolean end,
            Metadata metadata,
            byte @Nullable [] path,
            byte @Nullable [] authority) {
        byte[][] fields = InternalMetadata.serialize(metadata);
        long max = Frames.HEADER_BYTES;
        max += path == null ? 0 : FieldWriter.maxBytes(PATH, path);
        max += authority == null ? 0 : FieldWriter.maxBytes(AUTHORITY, authority);
        for (int i = 0; i < fields.length; i += 2) {
            max += FieldWriter.maxBytes(fields[i], fields[i + 1]);
        }
        if (max > Frames.MAX_FIELDS_BYTES) {
            return false;
        }
        ByteBuf into = room0((int) max);
        int begin = Frames.beginFields(into, trailers, stream, end);
        if (path != null) {
            fieldWriter.write(into, PATH, path);
        }
        if (authority != null) {
            fieldWriter.write(into, AUTHORITY, authority);
        }
        for (int i = 0; i < fields.length; i += 2) {
            fieldWriter.write(into, fields[i], fields[i + 1]);
        }
        Frames.endFields(into, begin);
        sending0();
        return true;
    }

    /** Room for an answer to something that the peer can send without limit. */
    private ByteBuf answer0(int bytes) {
        countAnswer0();
        return room0(bytes);
    }

    /** Counts an answer to something that the peer can send without limit. Those to open calls have a limit already. */
    final void countAnswer0() {
        if (!channel().isWritable()) {
            unreadAnswers++;
            if (unreadAnswers > MAX_UNREAD_ANSWERS + streams.size()) {
                end0(Status.UNAVAILABLE.withDescription("the peer does not read what it asks for"), null);
            }
        }
    }

    final void writeReset0(int stream, boolean notProcessed, Status status) {
        String text = status.getDescription() == null ? "" : status.getDescription();
        Frames.reset(room0(Frames.HEADER_BYTES + 512), stream, notProcessed, Outgoing.code(status), text);
    }

    final void writeGoAway0(int lastStream, GoAwayReason reason, String text) {
        Frames.goAway(room0(Frames.HEADER_BYTES + 512), lastStream, reason, text);
    }

    final void writePing0(long nonce) {
        Frames.ping(room0(Frames.HEADER_BYTES + Long.BYTES), false, nonce);
    }

    /** A call has begun. */
    final void add0(StreamFlow flow, int id) {
        flow.id = id;
        flow.credit = Objects.requireNonNull(peer).streamWindowBytes();
        flow.window = settings.windowBytes;
        streams.put(id, flow);
    }

    /** Sends the next of a call, when its turn has come. */
    final void send(Outgoing next) {
        StreamFlow flow = next.flow;
        if (flow.removed || ended) {
            next.release();
            return;
        }
        flow.pending.add(next);
        if (flow.id != 0) {
            turns.pump0(flow);
        }
    }

    private void sendOne0(StreamFlow flow) {
        Outgoing next = flow.pending.element();
        if (next.trailers != null) {
            flow.pending.remove();
            if (!writeFields0(true, flow.id, true, next.trailers, null, null)) {
                writeReset0(flow.id, false, Status.RESOURCE_EXHAUSTED.withDescription("trailers that are too long"));
            }
            flow.trailersUnreported = true;
            remove0(flow);
            reportLater0(flow);
            return;
        }
        int rest = next.remainingBytes();
        int bytes = Math.clamp(flow.credit, 0, rest); // credit may be below 0
        boolean whole = bytes == rest;
        flow.credit -= Frames.charge(bytes);
        unsent(-bytes);
        boolean end = whole && next.end;
        OutboundBuffer buffer = next.buffer;
        if (buffer == null || buffer.isShort()) {
            ByteBuf into = room0(Frames.HEADER_BYTES + bytes);
            Frames.data(into, flow.id, end, bytes);
            if (buffer != null) {
                buffer.copy(into, bytes);
            }
        } else {
            writeLong0(buffer.memory(), flow.id, end, bytes, whole, next.begun);
            next.begun = true;
        }
        if (whole) {
            flow.pending.remove();
            if (next.messages > 0) {
                tracer.reportMessageSent(next.messages);
            }
        }
        if (bytes > 0) {
            flow.sentUnreported += bytes;
            reportLater0(flow);
        }
        sending0();
    }

    private void reportLater0(StreamFlow flow) {
        if (!flow.reporting) {
            flow.reporting = true;
            toReport.add(flow);
        }
    }

    private void writeLong0(ByteBuf memory, int stream, boolean end, int bytes, boolean whole, boolean begun) {
        writeBatch0(); // what was sent before
        if (begun) {
            ByteBuf header = channel().alloc().directBuffer(Frames.HEADER_BYTES);
            Frames.data(header, stream, end, bytes);
            write0(Unpooled.wrappedBuffer(header, whole ? memory : memory.readRetainedSlice(bytes)));
            return;
        }
        int writerIndex = memory.writerIndex();
        memory.setIndex(0, 0); // the room that its allocator left
        Frames.data(memory, stream, end, bytes);
        memory.writerIndex(writerIndex);
        write0(whole ? memory : memory.readRetainedSlice(Frames.HEADER_BYTES + bytes));
    }

    /** A call leaves: what it has not sent is dropped. */
    final void remove0(StreamFlow flow) {
        if (flow.removed) {
            return;
        }
        flow.removed = true;
        streams.remove(flow.id);
        turns.remove0(flow);
        flow.releasePending();
    }

    // ---- receiving

    /** gRPC has taken bytes of a call. */
    final void consumed0(StreamFlow flow, int bytes) {
        if (flow.removed || ended) {
            return;
        }
        int surcharge = (int) ((long) flow.surcharge * bytes / Math.max(1, flow.unconsumed));
        flow.surcharge -= surcharge;
        flow.unconsumed -= bytes;
        flow.consumed += bytes + surcharge;
        if (flow.consumed >= settings.windowBytes / 2 && !flow.inboundEnded) {
            Frames.window(answer0(Frames.HEADER_BYTES + Integer.BYTES), flow.id, flow.consumed);
            flow.window += flow.consumed;
            flow.consumed = 0;
        }
    }

    @Override
    public final void onSettings(Settings announced) {
        peer = announced;
        ready0(announced);
    }

    /** What the peer has announced; null until then. */
    final @Nullable Settings peerSettings() {
        return peer;
    }

    @Override
    public final void onData(int stream, boolean end, ByteBuf from, int lengthBytes) throws ProtocolViolation {
        StreamFlow flow = streams.get(stream);
        if (flow == null) {
            checkKnown(stream); // it has ended here
            return;
        }
        if (lengthBytes > Math.max(0, flow.window)) { // the last DATA may be charged more than was left
            throw new ProtocolViolation("more DATA than a call's credit");
        }
        if (flow.inboundEnded || !flow.headersReceived) {
            throw new ProtocolViolation("DATA before a call's HEADERS or behind its end");
        }
        int charge = Frames.charge(lengthBytes);
        flow.window -= charge;
        flow.unconsumed += lengthBytes;
        flow.surcharge += charge - lengthBytes;
        flow.inboundEnded = end;
        data0(flow, payloads.take0(from, lengthBytes), end);
    }

    @Override
    public final void onWindow(int stream, int bytes) throws ProtocolViolation {
        StreamFlow flow = streams.get(stream);
        if (flow == null) {
            checkKnown(stream);
            return;
        }
        if (flow.credit + bytes > Integer.MAX_VALUE) {
            throw new ProtocolViolation("more credit than there can be");
        }
        flow.credit += bytes;
        turns.pump0(flow);
    }

    @Override
    public final void onPing(boolean ack, long nonce) {
        if (ack) {
            ponged0(nonce);
        } else {
            Frames.ping(answer0(Frames.HEADER_BYTES + Long.BYTES), true, nonce);
            pinged0();
        }
    }

    @Override
    public void handlerAdded(ChannelHandlerContext added) {
        context = added;
        channel(added.channel(), added.channel().eventLoop());
    }

    @Override
    public void channelActive(ChannelHandlerContext active) {
        Frames.settings(room0(Frames.HEADER_BYTES + 64), announced());
        finish0();
        active.fireChannelActive();
    }

    @Override
    public final void channelRead(ChannelHandlerContext from, Object message) {
        reading = true;
        try {
            if (keepAlive != null) {
                keepAlive.onDataReceived();
            }
            if (!ended && message instanceof ByteBuf bytes) {
                reader.read(bytes, this);
            }
        } catch (ProtocolViolation violation) {
            violated0(violation);
        } catch (RuntimeException | Error failure) {
            broken0(failure);
        } finally {
            ReferenceCountUtil.release(message);
        }
    }

    private void violated0(ProtocolViolation violation) {
        String text = "the peer broke the rules of gRPC's native transport: " + violation.getMessage();
        LOG.debug("{}: {}", this, text);
        end0(Status.INTERNAL.withDescription(text), GoAwayReason.VIOLATION);
    }

    @Override
    public final void channelReadComplete(ChannelHandlerContext from) {
        reading = false;
        finish0();
    }

    @Override
    public final void channelWritabilityChanged(ChannelHandlerContext from) {
        if (channel().isWritable() && !ended) {
            unreadAnswers = 0;
            turns.pumpAll0();
            if (!reading && !draining) {
                finish0();
            }
        }
    }

    @Override
    public final void exceptionCaught(ChannelHandlerContext from, Throwable cause) {
        because0(Status.UNAVAILABLE.withDescription("the connection was lost").withCause(cause));
        channel().close();
    }

    @Override
    public final void channelInactive(ChannelHandlerContext from) {
        closed0();
        from.fireChannelInactive();
    }

    /** Netty calls this for a channel that was never active, too. */
    @Override
    public final void channelUnregistered(ChannelHandlerContext from) {
        closed0();
        finish0(); // what a round that was cut short has collected is released
        from.fireChannelUnregistered();
    }

    /** Remembers why it ends. */
    final void because0(Status status) {
        if (endStatus == null) {
            endStatus = status;
        }
    }

    /**
     * Ends the connection, and all its calls at once.
     *
     * @param reason for the peer; null for none
     */
    final void end0(Status status, @Nullable GoAwayReason reason) {
        because0(status);
        if (!ended) {
            if (reason != null && channel().isActive()) {
                writeGoAway0(lastProcessed0(), reason, String.valueOf(status.getDescription()));
                flush0();
            }
            closed0();
        }
        channel().close();
    }

    /** The last call of the peer that this end has begun. */
    int lastProcessed0() {
        return 0;
    }

    /** The connection has ended, and its calls end next: calls that they begin then go elsewhere. */
    void ending0(Status why) {}

    /** The connection has ended: all calls end, and nothing is sent any more. */
    private void closed0() {
        if (ended) {
            return;
        }
        ended = true;
        reading = false;
        Status why =
                endStatus != null ? endStatus : Status.UNAVAILABLE.withDescription("the peer closed the connection");
        ByteBuf unsent = batch;
        batch = null;
        if (unsent != null) {
            unsent.release();
        }
        if (keepAlive != null) {
            keepAlive.onTransportTermination();
        }
        List<StreamFlow> open = new ArrayList<>(streams.values());
        streams.clear();
        turns.clear0();
        LostCall lost = new LostCall(why, RpcProgress.PROCESSED);
        for (StreamFlow flow : open) {
            flow.removed = true;
            flow.releasePending();
        }
        ending0(why);
        for (StreamFlow flow : open) {
            try {
                flow.owner.lost(lost);
            } catch (RuntimeException | Error failure) {
                LOG.warn("{}: the end of a call", this, failure); // go through the rest
            }
        }
        finish0();
        ended0(why);
    }

    final boolean isEnded0() {
        return ended;
    }
}
