package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.AttributeKey;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.verbena.transport.spi.Patience;

/** Records the events of a channel's pipeline. */
public final class Inbox extends ChannelInboundHandlerAdapter {
    public final BlockingQueue<byte[]> messages = new LinkedBlockingQueue<>();
    public final BlockingQueue<Object> events = new LinkedBlockingQueue<>();
    public final List<Throwable> failures = new CopyOnWriteArrayList<>();
    public final List<String> life = new CopyOnWriteArrayList<>();
    public final List<Boolean> writability = new CopyOnWriteArrayList<>();
    public final AtomicInteger readCompletes = new AtomicInteger();
    private final Consumer<RdmaChannel> onActive;

    /** Where a channel's inbox is found, also when its pipeline has been emptied. */
    static final AttributeKey<Inbox> KEY = AttributeKey.valueOf(Inbox.class, "inbox");

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        context.channel().attr(KEY).set(this);
    }

    public Inbox(Consumer<RdmaChannel> onActive) {
        this.onActive = onActive;
    }

    public byte[] next() {
        return Patience.take("a message", messages);
    }

    @Override
    public void channelRegistered(ChannelHandlerContext context) {
        life.add("registered");
        context.fireChannelRegistered();
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        life.add("active");
        onActive.accept((RdmaChannel) context.channel());
        context.fireChannelActive();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf buffer = (ByteBuf) message;
        byte[] bytes = ByteBufUtil.getBytes(buffer);
        buffer.release();
        messages.add(bytes);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        readCompletes.incrementAndGet();
        context.fireChannelReadComplete();
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        writability.add(context.channel().isWritable());
        context.fireChannelWritabilityChanged();
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        events.add(event);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        failures.add(cause);
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        life.add("inactive");
        context.fireChannelInactive();
    }

    @Override
    public void channelUnregistered(ChannelHandlerContext context) {
        life.add("unregistered");
        context.fireChannelUnregistered();
    }
}
