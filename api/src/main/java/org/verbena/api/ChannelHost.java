package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoop;
import java.nio.channels.ClosedChannelException;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.ChannelConnection;
import org.verbena.api.internal.channel.Connector;
import org.verbena.api.internal.channel.InboundBridge;
import org.verbena.api.internal.channel.OperationGate;
import org.verbena.api.internal.channel.OutboundBridge;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.internal.memory.ServerPeers;
import org.verbena.api.internal.request.Frames;
import org.verbena.api.internal.request.MessagePort;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.RdmaException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.RateLimitedLog;
import org.verbena.transport.spi.RdmaProvider;

/** A channel as its parts see it: they use nothing else of it. */
final class ChannelHost
        implements OutboundBridge.Host,
                InboundBridge.Host,
                OperationGate,
                ChannelConnection.Host,
                Connector.Host,
                MessagePort {
    private final AbstractRdmaChannel channel;

    /** What waits above the channel. Written before the connection is made, read by any thread. */
    private volatile LongSupplier above = () -> 0;

    /** Messages are {@link Frames}. Event loop only. */
    private boolean isShortForm;

    /** How long one may be, once both ends have agreed; it stays so. Any thread. */
    private int maxMessageBytes = Integer.MAX_VALUE;

    ChannelHost(AbstractRdmaChannel channel) {
        this.channel = channel;
    }

    @Override
    public EventLoop eventLoop() {
        return channel.eventLoop();
    }

    @Override
    public @Nullable EventLoop loop() {
        try {
            return channel.eventLoop();
        } catch (IllegalStateException unregistered) {
            return null;
        }
    }

    @Override
    public ChannelPipeline pipeline() {
        return channel.pipeline();
    }

    @Override
    public ChannelConfig config() {
        return channel.config();
    }

    @Override
    public ByteBufAllocator alloc() {
        return channel.alloc();
    }

    @Override
    public @Nullable ChannelOutboundBuffer outboundBuffer() {
        return channel.unsafe().outboundBuffer();
    }

    @Override
    public @Nullable String label() {
        return channel.label();
    }

    /** Until the connection has a message's outcome, the outbound buffer has it as well. */
    @Override
    public long queuedBytes(long inConnection) {
        ChannelOutboundBuffer outbound = outboundBuffer();
        long written = outbound == null ? 0 : outbound.totalPendingWriteBytes();
        return Math.max(inConnection, written) + above.getAsLong();
    }

    @Override
    public @Nullable MessageConnection connection0() {
        return channel.connection().open0();
    }

    @Override
    public MessageConnection enter0() throws ClosedChannelException {
        return channel.connectionForOperation0();
    }

    @Override
    public @Nullable ServerPeers peers() {
        RdmaServerChannel server = channel.parent();
        return server == null ? null : server.peers();
    }

    @Override
    public MemoryDomain domain0() {
        return channel.connection().sharedMemory();
    }

    @Override
    public boolean readSinkNeedsRemoteWrite0() {
        return channel.connection().capabilities().readSinkNeedsRemoteWrite();
    }

    @Override
    public boolean wantsInbound0() {
        return channel.wantsInbound0();
    }

    @Override
    public void flushAgain0() {
        channel.flushAgain0();
    }

    @Override
    public void abort0(Throwable cause) {
        MessageConnection open = channel.connection().open0();
        if (open != null) {
            open.abort(cause);
        }
    }

    @Override
    public void abortLocally0(Throwable cause) {
        channel.abortForPromises0(cause);
        abort0(cause);
    }

    @Override
    public Throwable translate0(Throwable cause) {
        return channel.translate0(cause);
    }

    @Override
    public Throwable forHandlers0(Throwable cause) {
        return channel.forHandlers0(cause);
    }

    @Override
    public boolean isAnswer0(ByteBuf message) {
        return isShortForm && Frames.isAnswer(message);
    }

    @Override
    public void sendRaw0(Object message, MessageConnection open, OperationCallback onSent) {
        RawMessage raw = (RawMessage) message; // the channel takes nothing else
        open.sendRaw(raw.content().retain(), raw.opcode(), raw.flags(), raw.word(), onSent, null);
    }

    // ---- the connection's events

    @Override
    public boolean isOpen() {
        return channel.isOpen();
    }

    @Override
    public InboundBridge inbound0() {
        return channel.inboundBridge0();
    }

    @Override
    public void onPrepared0(ChannelBuffers buffers) {
        channel.onPrepared0(buffers);
    }

    @Override
    public void onActive0(MessageConnection active) {
        channel.onActive0(active);
    }

    @Override
    public void onPeerEnd0() {
        channel.onPeerEnd0();
    }

    @Override
    public void onImmediate0(int immediateData, int lengthBytes) {
        inbound0().onEvent(new ImmediateDataEvent(immediateData, lengthBytes));
    }

    @Override
    public void onInvalidated0(int remoteKey) {
        inbound0().onEvent(new KeyInvalidatedEvent(remoteKey));
    }

    @Override
    public void onWritability0(MessageConnection from, boolean writable) {
        channel.onWritability0(from, writable);
    }

    @Override
    public void onInactive0(@Nullable Throwable cause) {
        channel.onInactive0(cause);
    }

    // ---- binding and connecting

    @Override
    public MessageConnection begin0(RdmaProvider provider, Role role, MessageOptions options) {
        return channel.begin0(provider, role, options);
    }

    @Override
    public Exception forBind0(RdmaException cause) {
        return channel.forBind0(cause);
    }

    @Override
    public Throwable forConnect0(Throwable cause) {
        return channel.forConnect0(cause);
    }

    @Override
    public void close0() {
        channel.unsafe().close(channel.unsafe().voidPromise());
    }

    // ---- the short form

    @Override
    public Channel channel() {
        return channel;
    }

    @Override
    public void beginShortForm0(LongSupplier bytes) {
        above = bytes;
        isShortForm = true;
    }

    @Override
    public boolean hasPeerClosed0() {
        return channel.connection().hasPeerClosed0();
    }

    @Override
    public long arrivalNanos0() {
        return channel.connection().arrivalNanos0();
    }

    @Override
    public int maxMessageBytes() {
        int known = maxMessageBytes;
        if (known == Integer.MAX_VALUE) {
            MessageConnection begun = channel.connection().begun();
            Negotiated agreed = begun == null ? null : begun.negotiated();
            if (agreed != null) {
                known = Math.max(0, agreed.maxOutboundMessageBytes() - Frames.RESERVED_BYTES);
                maxMessageBytes = known;
            }
        }
        return known;
    }

    @Override
    public MessageStatistics statistics() {
        return channel.statistics();
    }

    @Override
    public @Nullable ConnectionStat stat() {
        return channel.connection().stat();
    }

    @Override
    public @Nullable RateLimitedLog strangers() {
        RdmaServerChannel server = channel.parent();
        return server == null ? null : server.reception().strangers();
    }
}
