package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.Patience;

/** The gRPC suite on the soft provider. */
class SoftGrpcTest extends GrpcSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Test
    void hasLoopsOfItsOwn() throws Exception {
        MethodDescriptor<byte[], byte[]> echo = Bytes.method(MethodDescriptor.MethodType.UNARY, "echo");
        Server server = VerbenaGrpc.server(0)
                .addService(ServerServiceDefinition.builder("verbena.Test")
                        .addMethod(echo, ServerCalls.asyncUnaryCall((request, response) -> {
                            response.onNext(request);
                            response.onCompleted();
                        }))
                        .build())
                .build()
                .start();
        ManagedChannel channel = VerbenaGrpc.channel("localhost", server.getPort())
                .usePlaintext()
                .build();
        try {
            assertThat(ClientCalls.blockingUnaryCall(channel, echo, CallOptions.DEFAULT, new byte[] {7}))
                    .containsExactly(7);
        } finally {
            channel.shutdownNow().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
            server.shutdownNow().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }
}
