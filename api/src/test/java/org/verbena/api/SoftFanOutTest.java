package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.util.concurrent.Future;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.transport.spi.Patience;

/** One of something for many: a buffer, a callback, a channel that many short-lived threads write to. */
class SoftFanOutTest extends ApiSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Test
    void oneBufferGoesToManyChannels() {
        int count = 20;
        int times = 50;
        try (Server server = listen()) {
            List<RdmaChannel> clients = new ArrayList<>();
            List<RdmaChannel> accepted = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                clients.add(connect(server));
                accepted.add(server.next());
            }
            ByteBuf one = pattern(clients.getFirst(), 3000, 1);
            List<Future<?>> sent = new ArrayList<>();
            for (int i = 0; i < times; i++) {
                for (RdmaChannel client : clients) {
                    sent.add(client.writeAndFlush(one.retainedDuplicate()));
                }
            }
            byte[] expected = patternBytes(3000, 1);
            for (RdmaChannel each : accepted) {
                for (int i = 0; i < times; i++) {
                    assertThat(inbox(each).next()).isEqualTo(expected);
                }
            }
            sent.forEach(each -> done("a send", each));
            assertThat(one.refCnt()).isOne();
            assertThat(ByteBufUtil.getBytes(one)).isEqualTo(expected);
            one.release();
            clients.forEach(client -> done("closing", client.close()));
        }
    }

    @Test
    void requestsFollowFromTheCallbackOfTheLast() {
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            CompletableFuture<Integer> done = new CompletableFuture<>();
            next(client, 20_000, done);
            assertThat(Patience.await("the last reply", done)).isZero();
        }
    }

    private static void next(RdmaClient client, int left, CompletableFuture<Integer> done) {
        if (left == 0) {
            done.complete(0);
            return;
        }
        client.request(new byte[8], Duration.ofSeconds(Long.MAX_VALUE)).whenComplete((reply, failure) -> {
            if (failure == null) {
                next(client, left - 1, done);
            } else {
                done.completeExceptionally(failure);
            }
        });
    }

    @Test
    void timesMayBeOfAnyLength() {
        Duration ever = Duration.ofSeconds(Long.MAX_VALUE);
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .shedding(ever, ever)
                        .bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connectTimeout(ever)
                        .requestTimeout(ever)
                        .connect(host(), server.port())) {
            assertThat(Patience.await("a reply", client.request(new byte[3]))).hasSize(3);
            assertThat(Patience.await("a reply", client.request(new byte[3], Duration.ofNanos(Long.MAX_VALUE))))
                    .hasSize(3);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void threadsThatWriteOnceLeaveNothing(boolean virtual) {
        int threads = virtual ? 10_000 : 1_000;
        int bytes = 100;
        AtomicLong arrived = new AtomicLong();
        ThreadFactory factory =
                virtual ? Thread.ofVirtual().factory() : Thread.ofPlatform().factory();
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind(host(), 0, (exchange, message) -> arrived.addAndGet(message.readableBytes()));
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            long before = registeredBytes(client);
            try (ExecutorService each = Executors.newThreadPerTaskExecutor(factory)) {
                for (int i = 0; i < threads; i++) {
                    each.execute(() -> {
                        ByteBuf message = client.channel().alloc().buffer(bytes).writeZero(bytes);
                        client.send(message).syncUninterruptibly();
                    });
                }
            }
            Patience.until("all bytes are there", () -> arrived.get() == (long) threads * bytes);
            assertThat(registeredBytes(client) - before)
                    .as("memory that threads keep")
                    .isLessThan(64L << 20);
        }
    }

    private static long registeredBytes(RdmaClient client) {
        return ChannelBuffers.sendBuffers(Set.of(client.channel().sharedMemory()))
                .registeredBytes();
    }
}
