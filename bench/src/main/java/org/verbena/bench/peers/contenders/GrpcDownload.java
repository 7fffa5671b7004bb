package org.verbena.bench.peers.contenders;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerMethodDefinition;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.contenders.GrpcMessages.Numbered;

/**
 * gRPC's server streaming: the server repeats the request's payload, numbered, as fast as gRPC's flow control lets it.
 * The client takes as many messages at once as the load allows; a round trip is the time from that to the message.
 */
final class GrpcDownload extends ClientCall.Listener<byte[]> {
    private static final MethodDescriptor<Numbered, byte[]> CALL =
            method(new GrpcMessages.OfNumbered(), new GrpcMessages.OfBytes());
    private static final MethodDescriptor<byte[], Numbered> SERVICE =
            method(new GrpcMessages.OfBytes(), new GrpcMessages.OfNumbered());

    private final Load load;
    private final ClientCall<Numbered, byte[]> call;
    private final CompletableFuture<Void> done = new CompletableFuture<>();

    GrpcDownload(ManagedChannel channel, Load load) {
        this.load = load;
        call = channel.newCall(CALL, CallOptions.DEFAULT);
    }

    private static <A, B> MethodDescriptor<A, B> method(
            MethodDescriptor.Marshaller<A> requests, MethodDescriptor.Marshaller<B> responses) {
        return MethodDescriptor.<A, B>newBuilder()
                .setType(MethodType.SERVER_STREAMING)
                .setFullMethodName("peerbench.Echo/download")
                .setRequestMarshaller(requests)
                .setResponseMarshaller(responses)
                .build();
    }

    /** The server's half. */
    static ServerMethodDefinition<byte[], Numbered> service() {
        return ServerMethodDefinition.create(
                SERVICE,
                ServerCalls.asyncServerStreamingCall((payload, responses) ->
                        new Sender(payload, (ServerCallStreamObserver<Numbered>) responses).start()));
    }

    /** Sends until its client has what it wants. */
    private static final class Sender {
        private final byte[] payload;
        private final ServerCallStreamObserver<Numbered> client;
        private long sequence;

        Sender(byte[] payload, ServerCallStreamObserver<Numbered> client) {
            this.payload = payload;
            this.client = client;
        }

        void start() {
            client.setOnCancelHandler(() -> {}); // the client's way to say that it has enough
            client.setOnReadyHandler(this::send);
        }

        private void send() {
            while (client.isReady() && !client.isCancelled()) {
                client.onNext(new Numbered(sequence, payload));
                sequence++;
            }
        }
    }

    void run() throws Exception {
        call.start(this, new Metadata());
        call.sendMessage(new Numbered(0, load.payload));
        call.halfClose();
        request();
        done.get();
    }

    private void request() {
        synchronized (load) { // the first are requested by another thread
            int requested = 0;
            while (load.next() >= 0) {
                requested++;
            }
            if (requested > 0) {
                call.request(requested);
            }
            if (load.finished()) {
                call.cancel("it has enough", null);
            }
        }
    }

    @Override
    public void onMessage(byte[] message) {
        synchronized (load) {
            load.echoed(ByteBuffer.wrap(message).getLong(), message.length, message[message.length - 1]);
        }
        request();
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
        if (load.finished()) {
            done.complete(null);
        } else {
            done.completeExceptionally(status.asException(trailers));
        }
    }
}
