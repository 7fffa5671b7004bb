package org.verbena.it.environment;

import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.stub.StreamObserver;
import io.grpc.testing.integration.EmptyProtos.Empty;
import io.grpc.testing.integration.TestServiceGrpc;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.VerbenaGrpc;

/** The program that is run: a call of gRPC on each provider that the arguments name. */
public final class Calls {
    private Calls() {}

    private static final class Service extends TestServiceGrpc.TestServiceImplBase {
        @Override
        public void emptyCall(Empty request, StreamObserver<Empty> reply) {
            reply.onNext(request);
            reply.onCompleted();
        }
    }

    /** Prints a line for each provider whose call was answered. */
    public static void main(String[] providers) throws Exception {
        for (String provider : providers) {
            try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider, 1)) {
                Server server = VerbenaGrpc.server(new InetSocketAddress("127.0.0.1", 0), loops)
                        .addService(new Service())
                        .build()
                        .start();
                ManagedChannel channel = VerbenaGrpc.channel("127.0.0.1", server.getPort(), loops)
                        .usePlaintext()
                        .build();
                TestServiceGrpc.newBlockingStub(channel)
                        .withDeadlineAfter(60, TimeUnit.SECONDS)
                        .emptyCall(Empty.getDefaultInstance());
                System.out.println(provider + " answered");
                channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
                server.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
            }
        }
    }
}
