package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.util.IllegalReferenceCountException;
import java.nio.channels.NotYetConnectedException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.MessageClaims.Outcome;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.spi.Patience;

/** Messages that are claimed in the next frame, on a channel. */
public abstract class ClaimsSuite extends ApiSuite {
    private static final int MESSAGES = 50_000;

    /** Sixteen messages or more share a frame. */
    private static final double MAX_FRAMES = 1.0 / 16;

    /** Counts messages of consecutive numbers. */
    private static final class Counter extends ChannelInboundHandlerAdapter {
        private volatile long count;

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf buffer = (ByteBuf) message;
            try {
                assertThat(buffer.readableBytes()).isEqualTo(8);
                long number = count;
                assertThat(buffer.readLong()).as("in the order sent").isEqualTo(number);
                count = number + 1;
            } finally {
                buffer.release();
            }
        }
    }

    /** Sends consecutive numbers as fast as the channel takes them, and goes on when it becomes writable. */
    private static final class Feed extends ChannelInboundHandlerAdapter {
        /** So many claims come between two ordinary writes; 0 for no writes. */
        private final int claimsBetweenWrites;

        volatile long next;
        volatile int pressed;

        Feed(int claimsBetweenWrites) {
            this.claimsBetweenWrites = claimsBetweenWrites;
        }

        void go(RdmaChannel channel) {
            MessageClaims claims = channel.claims();
            for (long number = next; number < MESSAGES; next = ++number) {
                if (claimsBetweenWrites > 0 && number % (claimsBetweenWrites + 1) == 0) {
                    channel.writeAndFlush(channel.alloc().buffer(8, 8).writeLong(number));
                } else {
                    Outcome outcome = claims.tryClaim(8);
                    if (outcome != Outcome.CLAIMED) {
                        assertThat(outcome).isEqualTo(Outcome.BACK_PRESSURED);
                        int times = pressed;
                        pressed = times + 1;
                        return; // channelWritabilityChanged follows
                    }
                    claims.buffer().writeLong(number);
                    assertThat(claims.commit()).isTrue();
                }
            }
            claims.flush();
        }

        @Override
        public void channelWritabilityChanged(ChannelHandlerContext context) {
            if (context.channel().isWritable()) {
                go((RdmaChannel) context.channel());
            }
            context.fireChannelWritabilityChanged();
        }
    }

    /** Runs on the channel's loop. */
    private static <T> T on(RdmaChannel channel, Supplier<T> action) {
        return Patience.await("a task of the loop", channel.eventLoop().submit(action::get));
    }

    private void feed(int claimsBetweenWrites) {
        Counter counter = new Counter();
        Feed feed = new Feed(claimsBetweenWrites);
        try (Server server = listen(counter)) {
            RdmaChannel channel = connect(server, feed);
            RdmaChannel accepted = server.next();
            long framesBefore = channel.statistics().framesSent();
            channel.eventLoop().execute(() -> feed.go(channel));
            Patience.until("all messages", () -> counter.count == MESSAGES);
            long frames = channel.statistics().framesSent() - framesBefore;
            System.out.printf(
                    "%s, an ordinary message among %d: %.4f frames a message, back-pressure %d times%n",
                    provider(), claimsBetweenWrites, (double) frames / MESSAGES, feed.pressed);
            if (claimsBetweenWrites == 0) {
                assertThat(frames).isLessThanOrEqualTo((long) (MESSAGES * MAX_FRAMES));
            }
            assertThat(inbox(accepted).failures).isEmpty();
            // They count when the device has sent them, which the reader does not wait for.
            Patience.until("all are sent", () -> channel.statistics().messagesSent() == MESSAGES);
            done("closing", channel.close());
        }
    }

    @Tag("lab-full")
    @Test
    void claimsThatFillFramesShareThem() {
        feed(0);
    }

    @Test
    void claimsAndWritesKeepTheirOrder() {
        feed(40);
    }

    @Test
    void aReaderThatStopsStopsTheClaimsUntilItReadsAgain() {
        Counter counter = new Counter();
        Feed feed = new Feed(0);
        try (Server server = listen(counter)) {
            RdmaChannel channel = connect(server, feed);
            RdmaChannel accepted = server.next();
            accepted.config().setAutoRead(false);
            settle(channel, accepted);
            channel.eventLoop().execute(() -> feed.go(channel));
            Patience.until("back-pressure", () -> feed.pressed > 0 && !channel.isWritable());
            settle(channel, accepted);
            assertThat(feed.next).isLessThan(MESSAGES);
            accepted.config().setAutoRead(true);
            Patience.until("all messages", () -> counter.count == MESSAGES);
            assertThat(inbox(accepted).failures).isEmpty();
            done("closing", channel.close());
        }
    }

    @Test
    void closingSendsWhatWasCommitted() {
        Counter counter = new Counter();
        try (Server server = listen(counter)) {
            RdmaChannel channel = connect(server);
            RdmaChannel accepted = server.next();
            MessageClaims claims = on(channel, channel::claims);
            // Where a connection begins with few receives, it has more when it was in use.
            AtomicLong committed = new AtomicLong();
            Patience.until("the channel takes 300 claims in a row", () -> {
                int count = on(channel, () -> commit(claims, committed));
                if (count < 300) {
                    on(channel, () -> {
                        claims.flush();
                        return null;
                    });
                    Patience.until("they have come", () -> counter.count == committed.get());
                }
                return count == 300;
            });
            on(channel, () -> {
                assertThat(claims.tryClaim(8)).isEqualTo(Outcome.CLAIMED);
                channel.close();
                assertThat(claims.commit()).as("after close").isFalse();
                return claims.tryClaim(8) == Outcome.CLOSED;
            });
            done("the end of the connection", accepted.closeFuture());
            assertThat(counter.count).isEqualTo(committed.get());
            done("the end of the connection", channel.closeFuture());
            assertThat(on(channel, () -> claims.tryClaim(8))).isEqualTo(Outcome.CLOSED);
        }
    }

    /** Commits up to 300 messages, without a flush. */
    private static int commit(MessageClaims claims, AtomicLong committed) {
        for (int count = 0; count < 300; count++) {
            if (claims.tryClaim(8) != Outcome.CLAIMED) {
                return count;
            }
            claims.buffer().writeLong(committed.getAndIncrement());
            assertThat(claims.commit()).isTrue();
        }
        return 300;
    }

    /** The open claim ends with the connection, and its memory goes home. */
    @Tag("lab-full")
    @Test
    void aPeerThatIsGoneEndsTheOpenClaim() {
        try (Server server = listen()) {
            RdmaChannel channel = connect(server);
            RdmaChannel accepted = server.next();
            MessageClaims claims = on(channel, channel::claims);
            on(channel, () -> {
                assertThat(claims.tryClaim(100)).isEqualTo(Outcome.CLAIMED);
                claims.buffer().writeLong(1);
                assertThat(claims.commit()).isTrue();
                return claims.tryClaim(100);
            });
            accepted.config().setOption(ChannelOption.SO_LINGER, 0);
            accepted.close();
            done("the end of the connection", channel.closeFuture());
            settle(channel, channel);
            on(channel, () -> {
                assertThat(claims.tryClaim(8)).isEqualTo(Outcome.CLOSED);
                assertThatThrownBy(() -> claims.buffer().writeLong(1))
                        .isInstanceOf(IllegalReferenceCountException.class);
                return claims.commit();
            });
        }
    }

    @Tag("lab-full")
    @Test
    void refusesWhatCannotBe() {
        BlockingQueue<Throwable> early = new LinkedBlockingQueue<>();
        try (Server server = listen()) {
            RdmaChannel channel = connect(server, new ChannelInboundHandlerAdapter() {
                @Override
                public void channelRegistered(ChannelHandlerContext context) {
                    try {
                        ((RdmaChannel) context.channel()).claims();
                    } catch (IllegalStateException refused) {
                        early.add(refused);
                    }
                    context.fireChannelRegistered();
                }
            });
            assertThat(early)
                    .hasOnlyElementsOfType(NotYetConnectedException.class)
                    .hasSize(1);
            assertThatThrownBy(channel::claims).isInstanceOf(IllegalStateException.class);
            MessageClaims claims = on(channel, channel::claims);
            assertThatThrownBy(() -> claims.tryClaim(1)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(claims::commit).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(claims::flush).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(claims::abort).isInstanceOf(IllegalStateException.class);
            on(channel, () -> {
                assertThat(channel.claims()).isSameAs(claims);
                int max = claims.maxBytes();
                assertThatThrownBy(() -> claims.tryClaim(max + 1)).isInstanceOf(MessageTooLargeException.class);
                assertThat(claims.tryClaim(max)).isEqualTo(Outcome.CLAIMED);
                assertThatThrownBy(() -> claims.tryClaim(1)).isInstanceOf(IllegalStateException.class);
                claims.buffer().writeZero(max);
                assertThat(claims.commit()).isTrue();
                claims.flush();
                return max;
            });
            assertThat(inbox(server.next()).next()).isEqualTo(new byte[15_872]);
            done("closing", channel.close());
        }
    }
}
