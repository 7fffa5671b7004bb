package org.verbena.samples.grpc;

import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.netty.channel.EventLoopGroup;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.util.concurrent.Callable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.ServerSignals;
import org.verbena.samples.command.TransportOption;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** A gRPC server over RDMA or TCP. */
@Command(name = "grpc-server", description = "Greets grpc-client, in unary calls and in a stream.")
public final class GrpcServer implements Callable<Integer> {
    private static final Logger LOG = LoggerFactory.getLogger(GrpcServer.class);

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private TransportOption transport;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws IOException, InterruptedException {
        ServerSignals.endWithZero();
        EventLoopGroup group = transport.newGroup(options);
        try {
            Server server = NettyServerBuilder.forAddress(new InetSocketAddress(options.host, options.listenPort()))
                    .channelType(transport.serverChannelClass()) // VerbenaGrpc.server does these three for RDMA
                    .bossEventLoopGroup(group)
                    .workerEventLoopGroup(group)
                    .addService(service())
                    .build()
                    .start();
            PrintWriter out = spec.commandLine().getOut();
            out.println("grpc-server listens on " + server.getListenSockets().get(0) + " ("
                    + TransportOption.name(group) + ")");
            out.flush();
            server.awaitTermination();
        } finally {
            TransportOption.end(group);
        }
        return CommandLine.ExitCode.OK;
    }

    private static ServerServiceDefinition service() {
        return ServerServiceDefinition.builder(Greeter.SERVICE)
                .addMethod(Greeter.GREET, ServerCalls.asyncUnaryCall((name, response) -> {
                    response.onNext("Hello " + name);
                    response.onCompleted();
                }))
                .addMethod(Greeter.CHAT, ServerCalls.asyncBidiStreamingCall(Chat::new))
                .build();
    }

    /** Answers each line as it comes. */
    private record Chat(StreamObserver<String> answers) implements StreamObserver<String> {
        @Override
        public void onNext(String line) {
            answers.onNext("You said " + line);
        }

        @Override
        public void onError(Throwable cause) {
            LOG.info("the client disconnected: {}", cause.getMessage());
        }

        @Override
        public void onCompleted() {
            answers.onCompleted();
        }
    }
}
