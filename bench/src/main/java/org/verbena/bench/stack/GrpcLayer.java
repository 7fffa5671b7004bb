package org.verbena.bench.stack;

import io.grpc.CallOptions;
import io.grpc.KnownLength;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.VerbenaGrpc;

/** Unary calls of gRPC with plain bytes, both ends in their loop (direct executor). */
@SuppressWarnings("NullAway.Init") // opened before anything else
final class GrpcLayer implements Layer {
    private static final MethodDescriptor<byte[], byte[]> ECHO = MethodDescriptor.<byte[], byte[]>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName("stack.Echo/echo")
            .setRequestMarshaller(new Bytes())
            .setResponseMarshaller(new Bytes())
            .build();

    private final String provider;
    private final byte[] message = new byte[MESSAGE_BYTES];
    private RdmaEventLoopGroup group;
    private ManagedChannel channel;
    private @Nullable Series series;

    GrpcLayer(String provider) {
        this.provider = provider;
    }

    @Override
    public void open() throws IOException {
        group = new RdmaEventLoopGroup(provider, 1);
        Server server = VerbenaGrpc.server(new InetSocketAddress(Place.host(provider), 0), group)
                .directExecutor()
                .addService(ServerServiceDefinition.builder("stack.Echo")
                        .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, response) -> {
                            response.onNext(request);
                            response.onCompleted();
                        }))
                        .build())
                .build()
                .start();
        channel = VerbenaGrpc.overRdma(
                        NettyChannelBuilder.forAddress(new InetSocketAddress(Place.host(provider), server.getPort())),
                        group)
                .usePlaintext()
                .directExecutor()
                .build();
        // Connects.
        ClientCalls.blockingUnaryCall(channel, ECHO, CallOptions.DEFAULT, message);
    }

    @Override
    public void start(Series next) {
        group.next().execute(() -> {
            series = next;
            next.begin();
            for (int i = 0; i < next.window; i++) {
                call();
            }
        });
    }

    private void call() {
        ClientCalls.asyncUnaryCall(channel.newCall(ECHO, CallOptions.DEFAULT), message, new Answer());
    }

    private final class Answer implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] echo) {}

        @Override
        public void onError(Throwable cause) {
            Series current = series;
            if (current != null) {
                current.fail(cause);
            }
        }

        @Override
        public void onCompleted() {
            Series current = series;
            if (current != null && current.echoed()) {
                call();
            }
        }
    }

    private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new Known(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        }
    }

    private static final class Known extends ByteArrayInputStream implements KnownLength {
        Known(byte[] bytes) {
            super(bytes);
        }
    }
}
