package org.verbena.tools.perf;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerServiceDefinition;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.VerbenaGrpc;
import org.verbena.samples.command.CommandFailure;

/** Unary gRPC calls whose reply is the request. Everything of a call happens on one loop. */
final class PerfCalls implements PerfSubject {
    /** The longest request. */
    static final int MAX_BYTES = 64 << 20;

    private static final String SERVICE = "org.verbena.tools.Perf";

    private static final MethodDescriptor<byte[], byte[]> ECHO = MethodDescriptor.<byte[], byte[]>newBuilder()
            .setType(MethodType.UNARY)
            .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, "Echo"))
            .setRequestMarshaller(new Bytes())
            .setResponseMarshaller(new Bytes())
            .build();

    private static final long CLOSE_SECONDS = 10;

    private final EventLoop loop;
    private final ManagedChannel channel;

    /**
     * Connects with its first call.
     *
     * @param port where the server takes calls
     */
    PerfCalls(RdmaEventLoopGroup group, String host, int port) {
        loop = group.next();
        channel = VerbenaGrpc.channel(host, port, group)
                .eventLoopGroup(loop)
                .directExecutor()
                .maxInboundMessageSize(MAX_BYTES)
                .usePlaintext()
                .build();
    }

    /** The server's side of these calls. */
    static ServerServiceDefinition service() {
        return ServerServiceDefinition.builder(SERVICE)
                .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, reply) -> {
                    reply.onNext(request);
                    reply.onCompleted();
                }))
                .build();
    }

    @Override
    public Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes, PerfClient.Load load) {
        byte[] request = new byte[bytes];
        return () -> {
            Promise<Boolean> done = loop.newPromise();
            ClientCalls.asyncUnaryCall(channel.newCall(ECHO, CallOptions.DEFAULT), request, new Reply(done, bytes));
            return done;
        };
    }

    @Override
    public EventLoop loop() {
        return loop;
    }

    @Override
    public void close() {
        try {
            channel.shutdownNow().awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Completes a promise with the end of a call. */
    private record Reply(Promise<Boolean> done, int bytes) implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] reply) {
            if (reply.length != bytes) {
                done.tryFailure(new CommandFailure("a gRPC reply has " + reply.length + " bytes, not " + bytes));
            }
        }

        /** gRPC's own text is "io exception"; its causes say what happened. */
        @Override
        public void onError(Throwable failure) {
            Throwable deepest = failure;
            while (deepest.getCause() != null) {
                deepest = deepest.getCause();
            }
            done.tryFailure(new CommandFailure(
                    "a gRPC call failed: " + failure.getMessage()
                            + (deepest.equals(failure) ? "" : ": " + deepest.getMessage()),
                    failure));
        }

        @Override
        public void onCompleted() {
            done.trySuccess(true);
        }
    }

    private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException impossible) {
                throw new UncheckedIOException("a message in memory", impossible);
            }
        }
    }
}
