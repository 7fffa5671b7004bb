package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.netty.buffer.ByteBuf;
import io.netty.util.ResourceLeakDetector;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.FutureListener;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/** How much heap a request takes that has neither metadata nor options and is no stream: both ends, on one loop. */
@Timeout(120)
class RequestAllocationTest {
    private static final int WINDOW = 16;
    private static final int REQUESTS = 256;

    /** Some pay for what runs first, some for the compiler, and most on a busy machine: the least is what it needs. */
    private static final int MAX_ROUNDS = 2000;

    /**
     * The client's future of the reply, 80 bytes, and that of the send, 56; the server's request, 72, the exchange that
     * the handler has, 16, and the future of the reply's send, 72.
     */
    private static final int MAX_BYTES = 80 + 56 + 72 + 16 + 72;

    /** A frame carries several requests: their parts of an object for each frame, if the compiler keeps one. */
    private static final int MIN_OBJECT_BYTES = 16;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final ResourceLeakDetector.Level before = ResourceLeakDetector.getLevel();

    @BeforeEach
    void takeNoNotesOfBuffers() {
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.DISABLED);
    }

    @AfterEach
    void takeNotesAgain() {
        ResourceLeakDetector.setLevel(before);
    }

    /** On the loop, except where it says so. */
    private static final class Round implements FutureListener<ByteBuf> {
        private final RdmaClient client;
        private final CompletableFuture<Long> bytes = new CompletableFuture<>();
        private long bytesBefore;
        private int begun;
        private int answered;

        Round(RdmaClient client) {
            this.client = client;
        }

        /** Another thread. */
        long run() {
            client.channel().eventLoop().execute(() -> {
                bytesBefore = THREADS.getCurrentThreadAllocatedBytes();
                for (int i = 0; i < WINDOW; i++) {
                    send();
                }
            });
            return Patience.await("a round", bytes);
        }

        private void send() {
            begun++;
            client.request(client.channel().alloc().buffer(64).writeZero(64)).addListener(this);
        }

        @Override
        public void operationComplete(Future<ByteBuf> reply) {
            if (!reply.isSuccess()) {
                bytes.completeExceptionally(reply.cause());
                return;
            }
            reply.getNow().release();
            if (begun < REQUESTS) {
                send();
            }
            if (++answered == REQUESTS) {
                bytes.complete(THREADS.getCurrentThreadAllocatedBytes() - bytesBefore);
            }
        }
    }

    @Test
    void aRequestAllocatesNoMoreThanItsFutures() {
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup("soft", 1);
                RdmaServer server = RdmaServer.builder()
                        .group(loops)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder().group(loops).connect("127.0.0.1", server.port())) {
            long min = Long.MAX_VALUE;
            for (int i = 0; i < MAX_ROUNDS && min > MAX_BYTES * REQUESTS; i++) {
                min = Math.min(min, new Round(client).run());
            }
            assertThat((double) min / REQUESTS).as("bytes a request").isLessThan(MAX_BYTES + MIN_OBJECT_BYTES);
        }
    }
}
