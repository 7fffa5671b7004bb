package org.verbena.bench.peers.contenders;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Drainable;
import io.grpc.KnownLength;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.ServerBuilder;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.netty.channel.Channel;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioDomainSocketChannel;
import io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.grpc.VerbenaGrpc;

/**
 * gRPC, in unary calls or with all messages in one stream each way. The messages are plain bytes, cheaper than
 * protobuf; both sides work in the event loop (direct executor), with no hand-over to another thread.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class GrpcContender implements Contender {

    /** What is under gRPC. */
    public enum Transport {
        /** Its own (shaded) Netty on TCP, which takes epoll by itself, with as many loops as it likes. */
        SHADED,
        /** Netty's NIO sockets, one loop. */
        NIO,
        /** The same on a Unix domain socket. */
        UNIX,
        /** Verbena's streams, one loop. */
        VERBENA,
        /** Verbena's messages, one loop. */
        NATIVE
    }

    private static final int MAX_MESSAGE = 17 << 20;

    private static final MethodDescriptor<Message, byte[]> CALL =
            echo(MethodDescriptor.MethodType.UNARY, new Messages());
    private static final MethodDescriptor<byte[], byte[]> SERVICE =
            echo(MethodDescriptor.MethodType.UNARY, new Bytes());
    private static final MethodDescriptor<Message, byte[]> STREAM =
            echo(MethodDescriptor.MethodType.BIDI_STREAMING, new Messages());
    private static final MethodDescriptor<byte[], byte[]> STREAM_SERVICE =
            echo(MethodDescriptor.MethodType.BIDI_STREAMING, new Bytes());

    private final Transport transport;
    private final boolean streaming;

    /**
     * Makes one.
     *
     * @param transport what is under gRPC
     * @param streaming whether all messages go through one call
     */
    public GrpcContender(Transport transport, boolean streaming) {
        this.transport = transport;
        this.streaming = streaming;
    }

    private static <T> MethodDescriptor<T, byte[]> echo(
            MethodDescriptor.MethodType type, MethodDescriptor.Marshaller<T> requests) {
        return MethodDescriptor.<T, byte[]>newBuilder()
                .setType(type)
                .setFullMethodName(
                        type == MethodDescriptor.MethodType.UNARY ? "peerbench.Echo/echo" : "peerbench.Echo/stream")
                .setRequestMarshaller(requests)
                .setResponseMarshaller(new Bytes())
                .build();
    }

    @Override
    public List<String> jvmFlags() {
        List<String> flags = new ArrayList<>(Nettys.JVM_FLAGS);
        flags.add("-Dio.grpc.netty.shaded.io.netty.tryReflectionSetAccessible=true");
        return flags;
    }

    private ServerBuilder<?> serverBuilder(Path socket) {
        InetSocketAddress any = Place.address(0);
        return switch (transport) {
            case SHADED -> NettyServerBuilder.forAddress(any);
            case NIO -> nioServer(any, NioServerSocketChannel.class);
            case UNIX -> {
                Place.refuseHost("a Unix domain socket");
                yield nioServer(UnixDomainSocketAddress.of(socket), NioServerDomainSocketChannel.class);
            }
            case VERBENA -> VerbenaGrpc.server(any, new RdmaEventLoopGroup(Place.provider(), 1));
            case NATIVE -> VerbenaGrpc.nativeServer(any, new RdmaEventLoopGroup(Place.provider(), 1));
        };
    }

    private static ServerBuilder<?> nioServer(SocketAddress address, Class<? extends ServerChannel> type) {
        EventLoopGroup group = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
        return io.grpc.netty.NettyServerBuilder.forAddress(address)
                .channelType(type)
                .bossEventLoopGroup(group)
                .workerEventLoopGroup(group);
    }

    private ManagedChannelBuilder<?> channelBuilder(String address) {
        return switch (transport) {
            case SHADED -> NettyChannelBuilder.forAddress(Place.address(Integer.parseInt(address)));
            case NIO -> nioChannel(Place.address(Integer.parseInt(address)), NioSocketChannel.class);
            case UNIX ->
                nioChannel(UnixDomainSocketAddress.of(address), NioDomainSocketChannel.class)
                        .overrideAuthority("localhost"); // or it would be the path
            case VERBENA ->
                VerbenaGrpc.overRdma(
                        io.grpc.netty.NettyChannelBuilder.forAddress(Place.address(Integer.parseInt(address))),
                        new RdmaEventLoopGroup(Place.provider(), 1));
            case NATIVE -> {
                InetSocketAddress server = Place.address(Integer.parseInt(address));
                yield VerbenaGrpc.nativeChannel(
                                server.getHostString(), server.getPort(), new RdmaEventLoopGroup(Place.provider(), 1))
                        .http2Fallback(false);
            }
        };
    }

    private static ManagedChannelBuilder<?> nioChannel(SocketAddress address, Class<? extends Channel> type) {
        return io.grpc.netty.NettyChannelBuilder.forAddress(address)
                .channelType(type)
                .eventLoopGroup(new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory()));
    }

    @Override
    public Server startServer(Path scratch) throws IOException {
        Path socket = scratch.resolve("grpc");
        io.grpc.Server server = serverBuilder(socket)
                .directExecutor()
                .maxInboundMessageSize(MAX_MESSAGE)
                .addService(ServerServiceDefinition.builder("peerbench.Echo")
                        .addMethod(SERVICE, ServerCalls.asyncUnaryCall((request, response) -> {
                            response.onNext(request);
                            response.onCompleted();
                        }))
                        .addMethod(STREAM_SERVICE, ServerCalls.asyncBidiStreamingCall(EchoStream::new))
                        .build())
                .build()
                .start();
        return new Server() {
            @Override
            public String address() {
                return transport == Transport.UNIX ? socket.toString() : Integer.toString(server.getPort());
            }

            @Override
            public void close() {
                server.shutdownNow();
            }
        };
    }

    @Override
    public Client connect(String address) {
        ManagedChannel channel = channelBuilder(address)
                .usePlaintext()
                .directExecutor()
                .maxInboundMessageSize(MAX_MESSAGE)
                .build();
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                if (streaming) {
                    new Stream(channel, load).run();
                } else {
                    new Calls(
                                    load,
                                    (calls, sequence) -> ClientCalls.asyncUnaryCall(
                                            channel.newCall(CALL, CallOptions.DEFAULT),
                                            new Message(sequence, calls.payload()),
                                            new Answer(calls)))
                            .run();
                }
            }

            @Override
            public void close() {
                channel.shutdownNow();
            }
        };
    }

    /** Sends back what comes. */
    private record EchoStream(StreamObserver<byte[]> response) implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] message) {
            response.onNext(message);
        }

        @Override
        public void onError(Throwable cause) {
            // The client has gone: nothing is left to do.
        }

        @Override
        public void onCompleted() {
            response.onCompleted();
        }
    }

    /**
     * One call; every echo is answered with the next message. The first messages come from another thread, hence the
     * lock.
     */
    private static final class Stream implements StreamObserver<byte[]> {
        private final Load load;
        private final StreamObserver<Message> requests;
        private final CompletableFuture<Void> done = new CompletableFuture<>();
        private boolean ended;

        Stream(ManagedChannel channel, Load load) {
            this.load = load;
            ClientCall<Message, byte[]> call = channel.newCall(STREAM, CallOptions.DEFAULT);
            requests = ClientCalls.asyncBidiStreamingCall(call, this);
        }

        void run() throws Exception {
            send();
            done.get();
        }

        private void send() {
            synchronized (load) {
                for (long sequence; (sequence = load.next()) >= 0; ) {
                    requests.onNext(new Message(sequence, load.payload));
                }
                if (load.finished() && !ended) {
                    ended = true;
                    requests.onCompleted();
                }
            }
        }

        @Override
        public void onNext(byte[] echo) {
            synchronized (load) {
                load.echoed(ByteBuffer.wrap(echo).getLong(), echo.length, echo[echo.length - 1]);
                send();
            }
        }

        @Override
        public void onError(Throwable cause) {
            done.completeExceptionally(cause);
        }

        @Override
        public void onCompleted() {
            done.complete(null);
        }
    }

    /** One call, in its own method of the service. */
    private record Answer(Calls calls) implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] echo) {
            calls.replied(ByteBuffer.wrap(echo).getLong(), echo.length, echo[echo.length - 1]);
        }

        @Override
        public void onError(Throwable cause) {
            calls.failed(cause);
        }

        @Override
        public void onCompleted() {
            calls.next();
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
