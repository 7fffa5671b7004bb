package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/** One loop receives long messages from many peers, and a short one from another. */
@Timeout(120)
public abstract class FairLoopSuite {
    private static final int PEERS = 48;
    private static final int LONG_BYTES = 64 << 10;

    /** Messages that each peer has under way: more than a loop reads of it at once. */
    private static final int WINDOW = 16;

    private static final int SHORT_BYTES = 64;
    private static final int TIMES = 21;

    /** If each peer had its turn first, it would be {@link #PEERS} times 256 KiB, which is 12 MiB. */
    private static final long MAX_BYTES_BEFORE = 4 << 20;

    /** Which provider. */
    protected abstract String provider();

    @Test
    void aShortMessageDoesNotWaitUntilAllPeersWithLongOnesHaveHadTheirTurn() throws Exception {
        AtomicLong longBytes = new AtomicLong();
        AtomicLong arrivedAt = new AtomicLong();
        Semaphore arrived = new Semaphore(0);
        AtomicReference<EventExecutor> serverLoop = new AtomicReference<>();
        try (RdmaServer server = RdmaServer.builder()
                        .provider(provider())
                        .threadsPerProvider(1)
                        .bind("127.0.0.1", 0, (exchange, message) -> {
                            if (message.readableBytes() > SHORT_BYTES) {
                                longBytes.addAndGet(message.readableBytes());
                            } else {
                                serverLoop.set(exchange.channel().eventLoop());
                                arrivedAt.set(longBytes.get());
                                arrived.release();
                            }
                        });
                RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider(), 1);
                RdmaClient client = RdmaClient.builder().provider(provider()).connect("127.0.0.1", server.port())) {
            client.send(new byte[SHORT_BYTES]).get();
            arrived.acquire();
            EventExecutor loop = serverLoop.get();
            List<Pusher> pushers = new ArrayList<>();
            for (int i = 0; i < PEERS; i++) {
                pushers.add(new Pusher(RdmaClient.builder().group(group).connect("127.0.0.1", server.port())));
            }
            pushers.forEach(Pusher::start);
            Patience.until("all send", () -> longBytes.get() > (long) PEERS * WINDOW * LONG_BYTES);
            long[] before = new long[TIMES];
            for (int i = 0; i < TIMES; i++) {
                CountDownLatch blocked = new CountDownLatch(1);
                CountDownLatch sent = new CountDownLatch(1);
                AtomicLong atArrival = new AtomicLong();
                loop.execute(() -> {
                    atArrival.set(longBytes.get());
                    blocked.countDown();
                    await(sent);
                });
                await(blocked);
                client.send(new byte[SHORT_BYTES]).get();
                sent.countDown();
                assertThat(arrived.tryAcquire(1, TimeUnit.MINUTES)).isTrue();
                before[i] = arrivedAt.get() - atArrival.get();
            }
            pushers.forEach(Pusher::stop);
            Arrays.sort(before);
            System.out.printf(
                    "%s: before a short message came %d KiB of long ones in the median, %d KiB at the most%n",
                    provider(), before[TIMES / 2] >> 10, before[TIMES - 1] >> 10);
            assertThat(before[TIMES / 2])
                    .as("bytes of long messages before a short one")
                    .isLessThan(MAX_BYTES_BEFORE);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(1, TimeUnit.MINUTES)).isTrue();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Sends the next message when one has gone. */
    private static final class Pusher {
        private final RdmaClient client;
        private volatile boolean isStopped;

        Pusher(RdmaClient client) {
            this.client = client;
        }

        void start() {
            for (int i = 0; i < WINDOW; i++) {
                send();
            }
        }

        void stop() {
            isStopped = true;
        }

        private void send() {
            ByteBuf message = client.channel().alloc().buffer(LONG_BYTES, LONG_BYTES);
            message.writerIndex(LONG_BYTES);
            client.send(message).addListener((Future<Object> gone) -> {
                if (gone.isSuccess() && !isStopped) {
                    send();
                }
            });
        }
    }
}
