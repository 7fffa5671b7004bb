package org.verbena.samples.grpc;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import io.netty.channel.EventLoopGroup;
import java.net.InetSocketAddress;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Report;
import org.verbena.samples.command.TransportOption;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** A gRPC client over RDMA or TCP. */
@Command(name = "grpc-client", description = "Calls grpc-server: unary calls, then a bidirectional stream.")
public final class GrpcClient implements Callable<Integer> {
    private static final long DEADLINE_SECONDS = 30;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private TransportOption transport;

    @Option(
            names = "--name",
            paramLabel = "NAME",
            defaultValue = "world",
            description = "The name to greet (${DEFAULT-VALUE}).")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private String name;

    @Option(
            names = "--count",
            paramLabel = "N",
            defaultValue = "1000",
            description = "Number of unary calls, and of lines in the stream (${DEFAULT-VALUE}).")
    private int count;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Report report;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        if (count < 1) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--count must be 1 or more, not " + count);
        }
        int port = options.remotePort();
        EventLoopGroup group = transport.newGroup(options);
        ManagedChannel channel = NettyChannelBuilder.forAddress(options.host, port)
                .channelType(
                        transport.channelClass(),
                        InetSocketAddress.class) // VerbenaGrpc.channel does these two for RDMA
                .eventLoopGroup(group)
                .usePlaintext()
                .build();
        try {
            String greeting = greet(channel);
            report.line(greeting);
            Measurement calls = new Measurement();
            long began = System.nanoTime();
            for (int i = 0; i < count; i++) {
                long start = System.nanoTime();
                greet(channel);
                calls.record(System.nanoTime() - start);
            }
            calls.took(System.nanoTime() - began);
            Measurement lines = chat(channel);
            report.row("greet over " + TransportOption.name(group), calls, name.length());
            report.row("chat over " + TransportOption.name(group), lines, name.length());
            report.member("greeting", greeting)
                    .member("transport", TransportOption.name(group))
                    .end();
        } catch (StatusRuntimeException failure) {
            throw new CommandFailure(describe(failure), failure);
        } finally {
            channel.shutdownNow().awaitTermination(DEADLINE_SECONDS, TimeUnit.SECONDS);
            TransportOption.end(group);
        }
        return CommandLine.ExitCode.OK;
    }

    /** gRPC says "io exception", and its causes what happened. */
    private static String describe(Throwable failure) {
        Throwable deepest = failure;
        while (deepest.getCause() != null) {
            deepest = deepest.getCause();
        }
        return failure.getMessage() + (deepest.equals(failure) ? "" : ": " + deepest.getMessage());
    }

    private String greet(ManagedChannel channel) {
        return ClientCalls.blockingUnaryCall(
                channel,
                Greeter.GREET,
                CallOptions.DEFAULT.withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS),
                name);
    }

    /** The next line goes out when the last one was answered. */
    private Measurement chat(ManagedChannel channel) throws InterruptedException {
        Chat chat = new Chat(name, count);
        StreamObserver<String> lines =
                ClientCalls.asyncBidiStreamingCall(channel.newCall(Greeter.CHAT, CallOptions.DEFAULT), chat);
        chat.start(lines);
        try {
            return chat.outcome.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException failure) {
            throw new CommandFailure("the stream failed: " + describe(failure), failure);
        } catch (TimeoutException failure) {
            throw new CommandFailure("the stream was not complete after " + DEADLINE_SECONDS + " s", failure);
        }
    }

    /** gRPC calls an observer from one thread at a time. */
    private static final class Chat implements StreamObserver<String> {
        final CompletableFuture<Measurement> outcome = new CompletableFuture<>();
        private final String line;
        private final int count;
        private final Measurement times = new Measurement();
        private final CompletableFuture<StreamObserver<String>> lines = new CompletableFuture<>();
        private volatile long beganNanos;
        private volatile long sentNanos;
        private int answered;

        Chat(String line, int count) {
            this.line = line;
            this.count = count;
        }

        void start(StreamObserver<String> requests) {
            beganNanos = System.nanoTime();
            sentNanos = beganNanos;
            lines.complete(requests);
            requests.onNext(line);
        }

        @Override
        public void onNext(String answer) {
            if (!answer.endsWith(line)) {
                outcome.completeExceptionally(new CommandFailure("the server answered " + answer));
                return;
            }
            long now = System.nanoTime();
            times.record(now - sentNanos);
            answered++;
            StreamObserver<String> requests = lines.join();
            if (answered < count) {
                sentNanos = now;
                requests.onNext(line);
            } else {
                times.took(now - beganNanos);
                requests.onCompleted();
            }
        }

        @Override
        public void onError(Throwable cause) {
            outcome.completeExceptionally(cause);
        }

        @Override
        public void onCompleted() {
            outcome.complete(times);
        }
    }
}
