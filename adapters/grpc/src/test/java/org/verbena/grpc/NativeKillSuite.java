package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.ChildJvm;
import org.verbena.transport.spi.Patience;

/** A process is killed while 64 native calls with the other are under way. */
@Timeout(120)
public abstract class NativeKillSuite {
    private static final int CALLS = 64;
    private static final String READY = "child is ready ";
    private static final MethodDescriptor<byte[], byte[]> ECHO = Bytes.method(MethodType.UNARY, "echo");

    /** Is never answered. */
    private static final MethodDescriptor<byte[], byte[]> HOLD = Bytes.method(MethodType.BIDI_STREAMING, "hold");

    private final List<Process> children = new ArrayList<>();
    private final List<ManagedChannel> channels = new ArrayList<>();
    private final List<Server> servers = new ArrayList<>();
    private RdmaEventLoopGroup group;

    /** The provider's name. */
    protected abstract String provider();

    @BeforeEach
    void openGroup() {
        group = new RdmaEventLoopGroup(provider(), 2);
    }

    @AfterEach
    void endAll() throws Exception {
        children.forEach(Process::destroyForcibly);
        channels.forEach(ManagedChannel::shutdownNow);
        servers.forEach(Server::shutdownNow);
        for (ManagedChannel channel : channels) {
            assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        for (Server server : servers) {
            assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        group.close();
    }

    /** What happens to the calls of a server that are not answered. */
    private static final class Held {
        final AtomicInteger begun = new AtomicInteger();
        final AtomicInteger cancelled = new AtomicInteger();
        final AtomicInteger completed = new AtomicInteger();
    }

    private static Server start(RdmaEventLoopGroup group, int port, Held held) throws IOException {
        return VerbenaGrpc.nativeServer(new InetSocketAddress("127.0.0.1", port), group)
                .addService(ServerServiceDefinition.builder("verbena.Test")
                        .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, response) -> {
                            response.onNext(request);
                            response.onCompleted();
                        }))
                        .addMethod(HOLD, (call, headers) -> {
                            held.begun.incrementAndGet();
                            call.sendHeaders(new Metadata()); // the client learns that it is under way
                            call.request(1);
                            return new ServerCall.Listener<>() {
                                @Override
                                public void onCancel() {
                                    held.cancelled.incrementAndGet();
                                }

                                @Override
                                public void onComplete() {
                                    held.completed.incrementAndGet();
                                }
                            };
                        })
                        .build())
                .build()
                .start();
    }

    private static ManagedChannel connect(RdmaEventLoopGroup group, int port) {
        return VerbenaGrpc.nativeChannel("127.0.0.1", port, group)
                .http2Fallback(false)
                .usePlaintext()
                .build();
    }

    /** Begins a call, and counts what its program learns. */
    private static final class Call extends ClientCall.Listener<byte[]> {
        final CompletableFuture<Status> ended = new CompletableFuture<>();
        final AtomicInteger ends = new AtomicInteger();
        private final AtomicInteger underWay;

        Call(ManagedChannel channel, AtomicInteger underWay) {
            this.underWay = underWay;
            ClientCall<byte[], byte[]> call = channel.newCall(HOLD, CallOptions.DEFAULT);
            call.start(this, new Metadata());
            call.request(1);
            call.sendMessage(new byte[64]);
        }

        @Override
        public void onHeaders(Metadata headers) {
            underWay.incrementAndGet();
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            ends.incrementAndGet();
            ended.complete(status);
        }
    }

    private static List<Call> hold(ManagedChannel channel) {
        AtomicInteger underWay = new AtomicInteger();
        List<Call> calls = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            calls.add(new Call(channel, underWay));
        }
        Patience.until("all calls are under way", () -> underWay.get() == CALLS);
        return calls;
    }

    private static void isServed(ManagedChannel channel) {
        byte[] reply = ClientCalls.blockingUnaryCall(
                channel,
                ECHO,
                CallOptions.DEFAULT.withWaitForReady().withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS),
                new byte[] {7});
        assertThat(reply).containsExactly(7);
    }

    @Test
    void theServerIsKilled() throws Exception {
        Process child = child("server", 0);
        int port = Integer.parseInt(ready(child));
        ManagedChannel channel = connect(group, port);
        channels.add(channel);
        List<Call> calls = hold(channel);
        child.destroyForcibly();
        for (Call call : calls) {
            assertThat(Patience.await("the end of a call", call.ended).getCode())
                    .isEqualTo(Status.Code.UNAVAILABLE);
        }
        servers.add(start(group, port, new Held()));
        channel.resetConnectBackoff();
        isServed(channel);
        assertThat(calls).allMatch(call -> call.ends.get() == 1);
    }

    @Test
    void theClientIsKilled() throws Exception {
        Held held = new Held();
        Server server = start(group, 0, held);
        servers.add(server);
        Process child = child("client", server.getPort());
        ready(child);
        assertThat(held.begun.get()).isEqualTo(CALLS);
        child.destroyForcibly();
        Patience.until("all calls have ended", () -> held.cancelled.get() == CALLS);
        ManagedChannel other = connect(group, server.getPort());
        channels.add(other);
        isServed(other);
        assertThat(held.cancelled.get()).isEqualTo(CALLS);
        assertThat(held.completed.get()).isZero();
    }

    private Process child(String role, int port) throws IOException {
        List<String> flags = new ArrayList<>();
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (flag.startsWith("--") || flag.startsWith("-Dio.netty.try")) {
                flags.add(flag);
            }
        }
        Process started = new ProcessBuilder(
                        ChildJvm.command(flags, NativeKillSuite.class, role, provider(), Integer.toString(port)))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        children.add(started);
        return started;
    }

    /** What the child says when it is ready; its log comes the same way. */
    private static String ready(Process child) throws IOException {
        BufferedReader output = child.inputReader();
        String line = output.readLine();
        while (line != null && !line.startsWith(READY)) {
            line = output.readLine();
        }
        return Objects.requireNonNull(line, "the child has ended").substring(READY.length());
    }

    /**
     * The process that is killed. It ends by itself if its parent does.
     *
     * @param arguments role, provider, port
     */
    public static void main(String... arguments) throws Exception {
        RdmaEventLoopGroup ofChild = new RdmaEventLoopGroup(arguments[1], 1);
        if (arguments[0].equals("server")) {
            System.out.println(READY + start(ofChild, 0, new Held()).getPort());
        } else {
            hold(connect(ofChild, Integer.parseInt(arguments[2])));
            System.out.println(READY);
        }
        while (System.in.read() >= 0) {
            // the parent writes nothing
        }
        System.exit(0);
    }
}
