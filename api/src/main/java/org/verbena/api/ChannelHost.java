package org.verbena.api;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoop;
import java.nio.channels.ClosedChannelException;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.MemoryDomain;

/** A channel as its parts see it: the bridges and the one-sided operations ask for no more than this. */
final class ChannelHost implements OutboundBridge.Host, InboundBridge.Host, OperationGate {
    private final AbstractRdmaChannel channel;

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
    public @Nullable MessageConnection connection0() {
        return channel.connection0();
    }

    @Override
    public MessageConnection enter0() throws ClosedChannelException {
        return channel.connectionForOperation0();
    }

    @Override
    public MemoryDomain domain0() {
        return channel.sharedMemory();
    }

    @Override
    public boolean readSinkNeedsRemoteWrite0() {
        return channel.capabilities().readSinkNeedsRemoteWrite();
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
        MessageConnection open = channel.connection0();
        if (open != null) {
            open.abort(cause);
        }
    }

    @Override
    public void abortLocally0(Throwable cause) {
        channel.tellPromisesAlone0(cause);
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
}
