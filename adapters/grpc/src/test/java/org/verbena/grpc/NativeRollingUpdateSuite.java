package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.CallOptions;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.Patience;

/** Servers are restarted in turn, under load, and no call fails, though none waits for a server to be ready. */
@Timeout(120)
public abstract class NativeRollingUpdateSuite {
    private static final int SERVERS = 3;
    private static final int CALLERS = 8;

    /** So many calls a server answers before the next one is restarted. */
    private static final int ANSWERS = 50;

    private static final MethodDescriptor<byte[], byte[]> ECHO = Bytes.method(MethodType.UNARY, "echo");

    /** Is answered later, so that there are always calls under way. */
    private static final MethodDescriptor<byte[], byte[]> SLOW = Bytes.method(MethodType.UNARY, "slow");

    private final ScheduledExecutorService later = Executors.newSingleThreadScheduledExecutor();
    private final ExecutorService callers = Executors.newFixedThreadPool(CALLERS);
    private final List<Running> servers = new ArrayList<>();
    private final ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
    private RdmaEventLoopGroup group;
    private ManagedChannel channel;
    private volatile boolean stopped;

    /** The provider's name. */
    protected abstract String provider();

    /** A server, and how many calls it has answered. */
    private record Running(Server server, AtomicInteger answers) {}

    @BeforeEach
    void start() throws Exception {
        group = new RdmaEventLoopGroup(provider(), 2);
        List<String> addresses = new ArrayList<>();
        for (int i = 0; i < SERVERS; i++) {
            servers.add(start(0));
            addresses.add("127.0.0.1:" + servers.get(i).server().getPort());
        }
        channel = VerbenaGrpc.nativeChannel(
                        "verbena:///" + String.join(",", addresses), InsecureChannelCredentials.create(), group)
                .http2Fallback(false)
                .defaultLoadBalancingPolicy("round_robin")
                .build();
    }

    private Running start(int port) throws IOException {
        AtomicInteger answers = new AtomicInteger();
        Server server = VerbenaGrpc.nativeServer(new InetSocketAddress("127.0.0.1", port), group)
                .addService(ServerServiceDefinition.builder("verbena.Test")
                        .addMethod(
                                ECHO,
                                ServerCalls.asyncUnaryCall((request, response) -> answer(answers, request, response)))
                        .addMethod(
                                SLOW,
                                ServerCalls.asyncUnaryCall((request, response) -> later.schedule(
                                        () -> answer(answers, request, response), 20, TimeUnit.MILLISECONDS)))
                        .build())
                .build()
                .start();
        return new Running(server, answers);
    }

    private static void answer(AtomicInteger answers, byte[] request, StreamObserver<byte[]> response) {
        response.onNext(request);
        response.onCompleted();
        answers.incrementAndGet();
    }

    @AfterEach
    void end() throws Exception {
        stopped = true;
        callers.shutdownNow();
        channel.shutdownNow();
        servers.forEach(running -> running.server().shutdownNow());
        assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        for (Running running : servers) {
            isTerminated(running.server());
        }
        later.shutdownNow();
        group.close();
    }

    private static void isTerminated(Server server) throws InterruptedException {
        assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
    }

    private void callUntilStopped(MethodDescriptor<byte[], byte[]> method) {
        while (!stopped) {
            try {
                byte[] answer = ClientCalls.blockingUnaryCall(
                        channel,
                        method,
                        CallOptions.DEFAULT.withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS),
                        new byte[] {1, 2, 3});
                assertThat(answer).containsExactly(1, 2, 3);
            } catch (RuntimeException | AssertionError failure) {
                failures.add(failure);
                return;
            }
        }
    }

    private void answers(Running running) {
        Patience.until("the server has answered calls", () -> {
            channel.resetConnectBackoff(); // a client need not wait for its next attempt
            return running.answers().get() >= ANSWERS || !failures.isEmpty();
        });
    }

    @Test
    void noCallFails() throws Exception {
        List<Future<?>> calling = new ArrayList<>();
        for (int i = 0; i < CALLERS; i++) {
            MethodDescriptor<byte[], byte[]> method = i % 2 == 0 ? ECHO : SLOW;
            calling.add(callers.submit(() -> callUntilStopped(method)));
        }
        servers.forEach(this::answers);
        for (int i = 0; i < SERVERS; i++) {
            Server old = servers.get(i).server();
            int port = old.getPort();
            old.shutdown();
            isTerminated(old);
            servers.set(i, start(port));
            answers(servers.get(i));
        }
        stopped = true;
        for (Future<?> caller : calling) {
            caller.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
        assertThat(failures).isEmpty();
    }
}
