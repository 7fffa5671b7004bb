package org.verbena.samples.ticks;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;

/** A feed and a subscriber, on the soft provider. */
@Timeout(240)
class TickFeedTest {
    private static final long TICKS = 100_000;

    @Test
    void allTicksArriveInOrderAndShareFrames() throws Exception {
        CompletableFuture<RdmaChannel> feeding = new CompletableFuture<>();
        CompletableFuture<Void> done = new CompletableFuture<>();
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 2)) {
            Channel server = new ServerBootstrap()
                    .group(group)
                    .channel(RdmaServerChannel.class)
                    .childHandler(new ChannelInitializer<RdmaChannel>() {
                        @Override
                        protected void initChannel(RdmaChannel channel) {
                            channel.pipeline().addLast(new TickFeed(TICKS, number -> number / 4.0));
                            feeding.complete(channel);
                        }
                    })
                    .bind("127.0.0.1", 0)
                    .sync()
                    .channel();
            long[] next = {0};
            TickReader reader = new TickReader((number, price) -> {
                if (number != next[0] || price != number / 4.0) {
                    done.completeExceptionally(new AssertionError("tick " + number + " at " + price + " is not next"));
                } else if (++next[0] == TICKS) {
                    done.complete(null);
                }
            });
            new Bootstrap()
                    .group(group)
                    .channel(RdmaChannel.class)
                    .handler(reader)
                    .connect(server.localAddress())
                    .sync();
            done.get(200, TimeUnit.SECONDS);
            assertThat(feeding.join().statistics().framesSent()).isLessThan(TICKS / 16);
        }
    }
}
