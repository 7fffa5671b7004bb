package org.verbena.api.internal.channel;

import io.netty.channel.Channel;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.RecvByteBufAllocator;
import java.net.SocketAddress;
import org.jspecify.annotations.Nullable;

/**
 * Delegates to the unsafe of Netty's base class. Netty makes some of its operations, such as bind, final and
 * synchronous; a channel whose operations take time overrides them here.
 */
public class DelegatingUnsafe implements Channel.Unsafe {
    private final Channel.Unsafe unsafe;

    public DelegatingUnsafe(Channel.Unsafe unsafe) {
        this.unsafe = unsafe;
    }

    @Override
    @SuppressWarnings("deprecation") // the interface asks for it
    public RecvByteBufAllocator.Handle recvBufAllocHandle() {
        return unsafe.recvBufAllocHandle();
    }

    @Override
    public @Nullable SocketAddress localAddress() {
        return unsafe.localAddress();
    }

    @Override
    public @Nullable SocketAddress remoteAddress() {
        return unsafe.remoteAddress();
    }

    @Override
    public void register(EventLoop eventLoop, ChannelPromise promise) {
        unsafe.register(eventLoop, promise);
    }

    @Override
    public void bind(SocketAddress localAddress, ChannelPromise promise) {
        unsafe.bind(localAddress, promise);
    }

    @Override
    public void connect(SocketAddress remoteAddress, @Nullable SocketAddress localAddress, ChannelPromise promise) {
        unsafe.connect(remoteAddress, localAddress, promise);
    }

    @Override
    public void disconnect(ChannelPromise promise) {
        unsafe.disconnect(promise);
    }

    @Override
    public void close(ChannelPromise promise) {
        unsafe.close(promise);
    }

    @Override
    public void closeForcibly() {
        unsafe.closeForcibly();
    }

    @Override
    public void deregister(ChannelPromise promise) {
        unsafe.deregister(promise);
    }

    @Override
    public void beginRead() {
        unsafe.beginRead();
    }

    @Override
    public void write(Object message, ChannelPromise promise) {
        unsafe.write(message, promise);
    }

    @Override
    public void flush() {
        unsafe.flush();
    }

    @Override
    public ChannelPromise voidPromise() {
        return unsafe.voidPromise();
    }

    @Override
    public @Nullable ChannelOutboundBuffer outboundBuffer() {
        return unsafe.outboundBuffer();
    }
}
