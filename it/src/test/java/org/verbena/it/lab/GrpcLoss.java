package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.util.concurrent.FutureCallback;
import com.google.common.util.concurrent.Futures;
import com.google.common.util.concurrent.MoreExecutors;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderStatistics;
import org.verbena.grpc.VerbenaGrpc;
import org.verbena.transport.spi.Patience;

/**
 * One gRPC server, which loses a device under load: the device's clients come back on the next rung, and the others go
 * on. In a process of its own, as {@link DeviceLoss} is.
 */
public final class GrpcLoss {
    private static final int REQUESTS_UNDER_WAY = 2;
    private static final int PORT = 7946;

    /** That a client has to get, each time that it is looked at. */
    private static final int MORE = 20;

    /** Verbs has all the time that it needs; a device that is gone is passed over at once. */
    private static final LadderOptions LADDER = LadderTest.PATIENT.withForgetAfter(Duration.ZERO);

    private GrpcLoss() {}

    /** A client under load: a request is answered or fails, and another follows. */
    private static final class Load implements AutoCloseable {
        final String name;
        final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        final AtomicInteger replies = new AtomicInteger();
        final AtomicInteger open = new AtomicInteger();
        final AtomicLong lostNanos = new AtomicLong();
        final AtomicLong backNanos = new AtomicLong();
        private final ManagedChannel channel;
        private volatile boolean ends;

        Load(String name, NettyChannelBuilder builder) {
            this.name = name;
            channel = builder.usePlaintext().build();
            for (int i = 0; i < REQUESTS_UNDER_WAY; i++) {
                open.incrementAndGet();
                ask();
            }
        }

        private void ask() {
            byte[] request = new byte[512];
            Futures.addCallback(
                    ClientCalls.futureUnaryCall(
                            channel.newCall(GrpcEcho.CALL, CallOptions.DEFAULT.withWaitForReady()), request),
                    new FutureCallback<>() {
                        @Override
                        public void onSuccess(byte[] reply) {
                            replies.incrementAndGet();
                            if (lostNanos.get() != 0) {
                                backNanos.compareAndSet(0, System.nanoTime());
                            }
                            next();
                        }

                        @Override
                        public void onFailure(Throwable cause) {
                            if (!ends) {
                                failures.add(cause);
                                lostNanos.compareAndSet(0, System.nanoTime());
                            }
                            next();
                        }
                    },
                    MoreExecutors.directExecutor());
        }

        private void next() {
            if (ends) {
                open.decrementAndGet();
            } else {
                ask();
            }
        }

        void awaitMore() {
            int before = replies.get();
            Patience.until(name + " goes on", () -> replies.get() >= before + MORE);
            System.out.println(name + " is served");
        }

        /** Each request gets its answer. */
        @Override
        public void close() {
            ends = true;
            Patience.until("each request of " + name + " has ended", () -> open.get() == 0);
            channel.shutdownNow();
            Patience.until("the channel of " + name + " has ended", channel::isTerminated);
        }
    }

    /**
     * Runs.
     *
     * @param arguments the device that will be lost, and its address
     */
    public static void main(String[] arguments) {
        try {
            lose(arguments[0], arguments[1]);
            System.out.println("done");
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void lose(String device, String address) throws Exception {
        String kept = LabDevice.RXE.address();
        try (RdmaEventLoopGroup servers = new RdmaEventLoopGroup("all", 1);
                RdmaEventLoopGroup clients = new RdmaEventLoopGroup("ladder", 1)) {
            Server server = VerbenaGrpc.server(new InetSocketAddress(address, PORT), servers)
                    .addListenAddress(new InetSocketAddress(kept, PORT))
                    .withOption(RdmaChannelOption.PLAIN_TCP, true)
                    .addService(GrpcEcho.service())
                    .build()
                    .start();
            try (Load otherDevice = new Load("another device", VerbenaGrpc.channel(kept, PORT, LADDER, clients))) {
                otherDevice.awaitMore();
                long verbs = LadderStatistics.of("verbs").used();
                try (Load first = new Load("the device", VerbenaGrpc.channel(address, PORT, LADDER, clients));
                        Load second = new Load("the device too", VerbenaGrpc.channel(address, PORT, LADDER, clients));
                        Load soft = new Load(
                                "soft", VerbenaGrpc.channel(address, PORT, LADDER.withRungs("soft"), clients));
                        Load usual = new Load("plain TCP", NettyChannelBuilder.forAddress(address, PORT))) {
                    List<Load> losers = List.of(first, second);
                    List<Load> others = List.of(otherDevice, soft, usual);
                    losers.forEach(Load::awaitMore);
                    others.forEach(Load::awaitMore);
                    assertThat(LadderStatistics.of("verbs").used() - verbs)
                            .as("both are on the device")
                            .isEqualTo(losers.size());
                    pull(device, losers, others);
                }
            }
            server.shutdownNow();
            assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
    }

    private static void pull(String device, List<Load> losers, List<Load> others) throws Exception {
        long usedSoft = LadderStatistics.of("soft").used();
        Process removing =
                new ProcessBuilder("rdma", "link", "delete", device).inheritIO().start();
        for (Load load : losers) {
            Patience.until(load.name + " is back", () -> load.backNanos.get() != 0);
            // A figure to read, and no limit: it is the guest's pace.
            System.out.printf(
                    "%s: back after %d ms, lost %d requests: %s%n",
                    load.name,
                    TimeUnit.NANOSECONDS.toMillis(load.backNanos.get() - load.lostNanos.get()),
                    load.failures.size(),
                    load.failures.peek());
            load.awaitMore();
            assertThat(load.failures).as("those that were under way").hasSizeLessThanOrEqualTo(REQUESTS_UNDER_WAY);
        }
        assertThat(LadderStatistics.of("soft").used() - usedSoft).isEqualTo(losers.size());
        for (Load load : others) {
            load.awaitMore();
            assertThat(load.failures).as(load.name).isEmpty();
        }
        assertThat(removing.waitFor(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .as("the device is gone while this process goes on")
                .isTrue();
    }
}
