package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** An echo, both ends on one loop, makes no garbage once it runs: the loop's thread is asked what it has allocated. */
class AllocationTest {
    private static final int WINDOW = 16;
    private static final int WARM_UP = 60_000;
    private static final int MEASURED = 40_000;
    /** What is done for the first time, in one of so many, allocates now and then. */
    private static final int MAX_MEASUREMENTS = 5;

    /**
     * The JVM's own bookkeeping (compiler, safepoints) now and then; a message that allocated would take 16 bytes or
     * more.
     */
    private static final double MAX_BYTES_PER_MESSAGE = 1.0;

    @ParameterizedTest
    @CsvSource({"64, 0, false", "64, 1000000, false", "64, -1, false", "4096, 0, false", "4096, 0, true"})
    @Timeout(240)
    void allocatesNothingPerMessage(int size, long spinNanos, boolean crc) throws Exception {
        SoftProvider provider =
                new SoftProvider(SoftOptions.ofSystemProperties().with(o -> o.crc = crc));
        MultiThreadIoEventLoopGroup group = new MultiThreadIoEventLoopGroup(
                1, provider.newIoHandlerFactory(new CompletionLoopOptions(spinNanos, 256, 1024)));
        IoEventLoop loop = group.next();
        try (Arena arena = Arena.ofShared()) {
            RegisteredMemory memory =
                    provider.memoryDomain().register(arena.allocate(4L * WINDOW * size), Set.of(Access.LOCAL_WRITE));
            CompletableFuture<InetSocketAddress> address = new CompletableFuture<>();
            Listener listener = provider.listen(
                    loop,
                    new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                    ListenOptions.DEFAULTS,
                    new ListenerHandler() {
                        @Override
                        public void onListening(Listener open) {
                            address.complete(open.localAddress());
                        }

                        @Override
                        public void onConnectRequest(Listener open, IncomingConnection connection) {
                            Endpoint unused =
                                    connection.accept(loop, EndpointOptions.DEFAULTS, new Echo(memory, size, false));
                        }

                        @Override
                        public void onClosed(Listener closed, @Nullable Throwable cause) {}
                    });
            Echo client = new Echo(memory, size, true);
            Endpoint unused =
                    provider.connect(loop, Patience.await("listening", address), EndpointOptions.DEFAULTS, client);
            double bytesPerMessage = client.measured.get(100, TimeUnit.SECONDS);
            listener.close();
            Patience.await("the loop ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
            memory.close();
            assertThat(bytesPerMessage).as("bytes per message").isLessThan(MAX_BYTES_PER_MESSAGE);
        }
    }

    /** Sends back what it receives; the client begins, and measures. */
    private static final class Echo implements EndpointHandler {
        private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        private final CompletableFuture<Double> measured = new CompletableFuture<>();
        private final RegisteredMemory memory;
        private final int size;
        private final boolean client;
        private final WorkRequest request = new WorkRequest(1);
        private final ScatterGatherList list = new ScatterGatherList(1);
        private long count;
        private long allocatedAtStart;

        Echo(RegisteredMemory memory, int size, boolean client) {
            this.memory = memory;
            this.size = size;
            this.client = client;
        }

        private long offset(long slot) {
            return (slot + (client ? 0 : 2 * WINDOW)) * size;
        }

        @Override
        public void onPrepared(Endpoint endpoint) {
            for (int i = 0; i < 2 * WINDOW; i++) {
                assertThat(endpoint.postReceive(i, list.clear().add(memory, offset(i), size)))
                        .isTrue();
            }
        }

        @Override
        public void onConnected(Endpoint endpoint, byte[] privateData) {
            if (client) {
                for (int i = 0; i < WINDOW; i++) {
                    send(endpoint, i);
                }
                endpoint.flush();
            }
        }

        private void send(Endpoint endpoint, long slot) {
            request.asSend(slot, 0).buffers().add(memory, offset(slot), size);
            if (!endpoint.post(request)) {
                measured.completeExceptionally(new AssertionError("the send queue is full"));
            }
        }

        @Override
        public void onReceiveCompletion(
                Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
            if (status != WorkStatus.SUCCESS) {
                return;
            }
            count++;
            if (client && count >= WARM_UP && (count - WARM_UP) % MEASURED == 0 && isMeasured()) {
                endpoint.disconnect();
                return;
            }
            send(endpoint, workId);
        }

        /** Ends a measurement, and begins another one if that is to be repeated. */
        private boolean isMeasured() {
            long measurements = (count - WARM_UP) / MEASURED;
            double each = (double) (threads.getCurrentThreadAllocatedBytes() - allocatedAtStart) / MEASURED;
            if (measurements > 0 && (each < MAX_BYTES_PER_MESSAGE || measurements == MAX_MEASUREMENTS)) {
                measured.complete(each);
                return true;
            }
            allocatedAtStart = threads.getCurrentThreadAllocatedBytes();
            return false;
        }

        @Override
        public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
            if (status == WorkStatus.SUCCESS
                    && !endpoint.postReceive(workId, list.clear().add(memory, offset(workId), size))) {
                measured.completeExceptionally(new AssertionError("the receive queue is full"));
            }
        }

        @Override
        public void onCompletionsHandled(Endpoint endpoint) {
            endpoint.flush();
        }

        @Override
        public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
            if (cause != null) {
                measured.completeExceptionally(cause);
            }
        }
    }
}
