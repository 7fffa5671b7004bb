package org.verbena.samples.grpc;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.StatusException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.BlockingClientCall;
import io.grpc.stub.ClientCalls;
import io.netty.channel.EventLoopGroup;
import java.net.InetSocketAddress;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
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
            Measurement calls = Measurement.of(count, () -> greet(channel));
            Measurement lines = chat(channel);
            report.row("greet over " + TransportOption.name(group), calls, name.length());
            report.row("chat over " + TransportOption.name(group), lines, name.length());
            report.member("greeting", greeting)
                    .member("transport", TransportOption.name(group))
                    .end();
        } catch (StatusException failure) {
            throw new CommandFailure(describe(failure), failure);
        } finally {
            channel.shutdownNow().awaitTermination(DEADLINE_SECONDS, TimeUnit.SECONDS);
            TransportOption.end(group);
        }
        return CommandLine.ExitCode.OK;
    }

    /** gRPC's own text is "io exception"; its causes say what happened. */
    private static String describe(Throwable failure) {
        Throwable deepest = failure;
        while (deepest.getCause() != null) {
            deepest = deepest.getCause();
        }
        return failure.getMessage() + (deepest.equals(failure) ? "" : ": " + deepest.getMessage());
    }

    private String greet(ManagedChannel channel) throws InterruptedException, StatusException {
        return ClientCalls.blockingV2UnaryCall(
                channel,
                Greeter.GREET,
                CallOptions.DEFAULT.withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS),
                name);
    }

    /** One call with a stream each way. Sends the next line when the last one has been answered. */
    private Measurement chat(ManagedChannel channel) throws InterruptedException, StatusException {
        CallOptions deadline = CallOptions.DEFAULT.withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS);
        BlockingClientCall<String, String> lines =
                ClientCalls.blockingBidiStreamingCall(channel, Greeter.CHAT, deadline);
        try {
            Measurement times = Measurement.of(count, () -> {
                lines.write(name);
                String answer = String.valueOf(lines.read());
                if (!answer.endsWith(name)) {
                    throw new CommandFailure("the server answered " + answer);
                }
            });
            lines.halfClose();
            lines.read(); // null: the server has ended its stream too
            return times;
        } finally {
            lines.cancel("after a failure", null); // does nothing to a call that has ended
        }
    }
}
