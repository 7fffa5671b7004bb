package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServerTransportFilter;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
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

    /** Connections end while calls are under way, and calls go on over the next one. */
    @Test
    void connectionsOfALimitedAgeFailNoCall() throws Exception {
        MethodDescriptor<byte[], byte[]> echo = Bytes.method(MethodDescriptor.MethodType.UNARY, "echo");
        AtomicInteger connections = new AtomicInteger();
        Server server = VerbenaGrpc.server(0)
                .maxConnectionAge(300, TimeUnit.MILLISECONDS) // gRPC makes a second of it
                .maxConnectionAgeGrace(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)
                .addTransportFilter(new ServerTransportFilter() {
                    @Override
                    public Attributes transportReady(Attributes attributes) {
                        connections.incrementAndGet();
                        return attributes;
                    }
                })
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
        try (ExecutorService callers = Executors.newFixedThreadPool(4)) {
            List<Callable<Void>> calls = new ArrayList<>();
            for (int bytes : new int[] {100, 200_000, 100, 200_000}) {
                calls.add(() -> {
                    while (connections.get() < 3) {
                        byte[] reply =
                                ClientCalls.blockingUnaryCall(channel, echo, CallOptions.DEFAULT, new byte[bytes]);
                        assertThat(reply).hasSize(bytes);
                    }
                    return null;
                });
            }
            for (Future<Void> caller : callers.invokeAll(calls)) {
                caller.get(); // throws what a call has failed with
            }
        } finally {
            channel.shutdownNow().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
            server.shutdownNow().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }
}
