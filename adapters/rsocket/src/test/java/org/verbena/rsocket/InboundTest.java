package org.verbena.rsocket;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.local.LocalChannel;
import io.netty.channel.local.LocalIoHandler;
import java.nio.channels.ClosedChannelException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.reactivestreams.Subscription;
import org.verbena.transport.spi.Patience;
import reactor.core.publisher.BaseSubscriber;

@Timeout(120)
class InboundTest {
    /** Reactive Streams 3.15 and 3.16: a subscription never throws. What came before the end is still delivered. */
    @Test
    void servesItsSubscriberWhenTheLoopHasEnded() {
        EventLoopGroup group = new MultiThreadIoEventLoopGroup(1, LocalIoHandler.newFactory());
        Channel channel = new LocalChannel();
        group.register(channel).syncUninterruptibly();
        Inbound inbound = new Inbound(channel);
        BlockingQueue<Object> told = new LinkedBlockingQueue<>();
        BaseSubscriber<ByteBuf> subscriber = new BaseSubscriber<>() {
            @Override
            protected void hookOnSubscribe(Subscription subscription) {
                told.add("subscribed");
            }

            @Override
            protected void hookOnNext(ByteBuf frame) {
                told.add(frame.readableBytes());
            }

            @Override
            protected void hookOnError(Throwable cause) {
                told.add(cause);
            }
        };
        inbound.subscribe(subscriber);
        assertThat(Patience.take("the subscription", told)).isEqualTo("subscribed");
        channel.eventLoop()
                .submit(() -> {
                    inbound.onFrame0(Unpooled.wrappedBuffer(new byte[3]));
                    inbound.onEnd0(new ClosedChannelException());
                })
                .syncUninterruptibly();
        group.shutdownGracefully(0, 0, TimeUnit.SECONDS).awaitUninterruptibly();

        subscriber.request(1);
        assertThat(Patience.take("the frame", told)).isEqualTo(3);
        assertThat(Patience.take("the end", told)).isInstanceOf(ClosedChannelException.class);
        subscriber.request(1);
        inbound.cancel();
    }
}
