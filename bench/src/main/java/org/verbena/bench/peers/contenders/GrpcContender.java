package org.verbena.bench.peers.contenders;

import io.grpc.CallOptions;
import io.grpc.Drainable;
import io.grpc.KnownLength;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;

/**
 * gRPC unary calls over its own (shaded) Netty on TCP, which takes epoll by itself. The messages are plain bytes,
 * cheaper than protobuf; both sides work in the event loop (direct executor), with no hand-over to another thread.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class GrpcContender implements Contender {

    private static final MethodDescriptor<Message, byte[]> CALL = echo(new Messages());
    private static final MethodDescriptor<byte[], byte[]> SERVICE = echo(new Bytes());

    private static <T> MethodDescriptor<T, byte[]> echo(MethodDescriptor.Marshaller<T> requests) {
        return MethodDescriptor.<T, byte[]>newBuilder()
                .setType(MethodDescriptor.MethodType.UNARY)
                .setFullMethodName("peerbench.Echo/echo")
                .setRequestMarshaller(requests)
                .setResponseMarshaller(new Bytes())
                .build();
    }

    @Override
    public List<String> jvmFlags() {
        return List.of(
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "--add-opens=java.base/java.nio=ALL-UNNAMED",
                "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
                "-Dio.grpc.netty.shaded.io.netty.tryReflectionSetAccessible=true");
    }

    @Override
    public Server startServer(Path scratch) throws IOException {
        io.grpc.Server server = NettyServerBuilder.forAddress(
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .directExecutor()
                .addService(ServerServiceDefinition.builder("peerbench.Echo")
                        .addMethod(SERVICE, ServerCalls.asyncUnaryCall((request, response) -> {
                            response.onNext(request);
                            response.onCompleted();
                        }))
                        .build())
                .build()
                .start();
        return new Server() {
            @Override
            public String address() {
                return Integer.toString(server.getPort());
            }

            @Override
            public void close() {
                server.shutdownNow();
            }
        };
    }

    @Override
    public Client connect(String address) {
        ManagedChannel channel = NettyChannelBuilder.forAddress(
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(address)))
                .usePlaintext()
                .directExecutor()
                .build();
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                new Calls(channel, load).run();
            }

            @Override
            public void close() {
                channel.shutdownNow();
            }
        };
    }

    /** Every answer starts the next call. The first calls come from another thread, hence the locks. */
    private record Calls(ManagedChannel channel, Load load, CompletableFuture<Void> done) {

        Calls(ManagedChannel channel, Load load) {
            this(channel, load, new CompletableFuture<>());
        }

        void run() throws Exception {
            send();
            done.get();
        }

        private void send() {
            while (true) {
                Message message;
                synchronized (load) {
                    long sequence = load.next();
                    if (sequence < 0) {
                        break;
                    }
                    message = new Message(sequence, load.payload);
                }
                ClientCalls.asyncUnaryCall(channel.newCall(CALL, CallOptions.DEFAULT), message, new Answer());
            }
            if (load.finished()) {
                done.complete(null);
            }
        }

        private final class Answer implements StreamObserver<byte[]> {
            @Override
            public void onNext(byte[] echo) {
                synchronized (load) {
                    load.echoed(ByteBuffer.wrap(echo).getLong(), echo.length, echo[echo.length - 1]);
                }
            }

            @Override
            public void onError(Throwable t) {
                done.completeExceptionally(t);
            }

            @Override
            public void onCompleted() {
                send();
            }
        }
    }

    /** What the client sends: the load's payload with a sequence number, copied only into gRPC's own buffer. */
    private record Message(long sequence, byte[] payload) {}

    private static final class Messages implements MethodDescriptor.Marshaller<Message> {
        @Override
        public InputStream stream(Message message) {
            byte[] head = ByteBuffer.allocate(8).putLong(message.sequence()).array();
            return new Outgoing(head, message.payload());
        }

        @Override
        public Message parse(InputStream stream) {
            throw new UnsupportedOperationException("only sent");
        }
    }

    private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new Outgoing(new byte[0], value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                byte[] value = new byte[stream.available()];
                if (stream.readNBytes(value, 0, value.length) != value.length) {
                    throw new IOException("message cut short");
                }
                return value;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    /** The payload with its first bytes replaced by the head; gRPC drains it straight into its buffer. */
    private static final class Outgoing extends ByteArrayInputStream implements KnownLength, Drainable {
        private final byte[] head;

        Outgoing(byte[] head, byte[] payload) {
            super(payload);
            this.head = head;
        }

        @Override
        public int drainTo(OutputStream target) throws IOException {
            target.write(head);
            target.write(buf, head.length, count - head.length);
            pos = count;
            return count;
        }
    }
}
