package org.verbena.grpc.internal.nativetransport;

import io.grpc.Attributes;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.internal.ClientStreamListener;
import io.grpc.internal.DisconnectError;
import io.grpc.internal.GrpcUtil;
import io.grpc.internal.ManagedClientTransport;
import io.grpc.internal.ServerListener;
import io.grpc.internal.ServerStream;
import io.grpc.internal.ServerStreamListener;
import io.grpc.internal.ServerTransport;
import io.grpc.internal.ServerTransportListener;
import io.grpc.internal.StreamListener;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Function;
import org.verbena.transport.spi.Patience;

/** Listeners of gRPC's transports that write down what they get. */
final class Recorders {
    private Recorders() {}

    /** Of a client's connection. */
    static final class OfTransport implements ManagedClientTransport.Listener {
        final BlockingQueue<Status> shutdown = new LinkedBlockingQueue<>();
        final CountDownLatch terminated = new CountDownLatch(1);
        final CountDownLatch ready = new CountDownLatch(1);
        final BlockingQueue<Boolean> inUse = new LinkedBlockingQueue<>();
        final AtomicInteger terminations = new AtomicInteger();

        @Override
        public void transportShutdown(Status status, DisconnectError error) {
            shutdown.add(status);
        }

        @Override
        public void transportTerminated() {
            terminations.incrementAndGet();
            terminated.countDown();
        }

        @Override
        public void transportReady() {
            ready.countDown();
        }

        @Override
        public void transportInUse(boolean now) {
            inUse.add(now);
        }
    }

    /** What both kinds of calls have. */
    abstract static class OfStream implements StreamListener {
        final BlockingQueue<byte[]> messages = new LinkedBlockingQueue<>();
        final AtomicInteger readies = new AtomicInteger();

        /** The program's deserializer. */
        volatile Function<InputStream, byte[]> parser = OfStream::parse;

        private static byte[] parse(InputStream message) {
            try {
                return message.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public void messagesAvailable(MessageProducer producer) {
            InputStream next = producer.next();
            while (next != null) {
                try (InputStream message = next) {
                    messages.add(parser.apply(message));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
                next = producer.next();
            }
        }

        @Override
        public void onReady() {
            readies.incrementAndGet();
        }

        byte[] message() throws Exception {
            return Patience.take("a message", messages);
        }
    }

    /** Of a client's call. */
    static class OfCall extends OfStream implements ClientStreamListener {
        final BlockingQueue<Metadata> headers = new LinkedBlockingQueue<>();
        final BlockingQueue<Status> closed = new LinkedBlockingQueue<>();
        final BlockingQueue<Metadata> trailers = new LinkedBlockingQueue<>();
        final BlockingQueue<RpcProgress> progress = new LinkedBlockingQueue<>();

        @Override
        public void headersRead(Metadata read) {
            headers.add(read);
        }

        @Override
        public void closed(Status status, RpcProgress rpcProgress, Metadata last) {
            trailers.add(last);
            progress.add(rpcProgress);
            closed.add(status);
        }

        Status.Code closedWith() throws Exception {
            return Patience.take("the end of the call", closed).getCode();
        }
    }

    /** Of a server's call. */
    static final class OfServed extends OfStream implements ServerStreamListener {
        final ServerStream stream;
        final String method;
        final Metadata headers;
        final CountDownLatch halfClosed = new CountDownLatch(1);
        final BlockingQueue<Status> closed = new LinkedBlockingQueue<>();

        OfServed(ServerStream stream, String method, Metadata headers) {
            this.stream = stream;
            this.method = method;
            this.headers = headers;
        }

        @Override
        public void halfClosed() {
            halfClosed.countDown();
        }

        @Override
        public void closed(Status status) {
            closed.add(status);
        }

        @Override
        public void triggerEvent(Object event) {}

        Status.Code closedWith() throws Exception {
            return Patience.take("the end of the server's call", closed).getCode();
        }
    }

    /** Of a server, and of its connections. */
    static final class OfServer implements ServerListener {
        final BlockingQueue<OfConnection> connections = new LinkedBlockingQueue<>();
        final CountDownLatch shutdown = new CountDownLatch(1);

        /** What a call does at once, on the event loop. */
        volatile Consumer<OfServed> onCall = call -> {};

        @Override
        public ServerTransportListener transportCreated(ServerTransport transport) {
            OfConnection connection = new OfConnection(transport, this);
            connections.add(connection);
            return connection;
        }

        @Override
        public void serverShutdown() {
            shutdown.countDown();
        }
    }

    /** Of a server's connection. */
    static final class OfConnection implements ServerTransportListener {
        final ServerTransport transport;
        final BlockingQueue<OfServed> calls = new LinkedBlockingQueue<>();
        final CountDownLatch ready = new CountDownLatch(1);
        final CountDownLatch terminated = new CountDownLatch(1);
        volatile Attributes attributes;

        private final OfServer server;

        OfConnection(ServerTransport transport, OfServer server) {
            this.transport = transport;
            this.server = server;
        }

        @Override
        public void streamCreated(ServerStream stream, String method, Metadata headers) {
            headers.get(GrpcUtil.TIMEOUT_KEY); // as gRPC's server does, which fails if it is malformed
            OfServed call = new OfServed(stream, method, headers);
            stream.setListener(call);
            server.onCall.accept(call);
            calls.add(call);
        }

        @Override
        public Attributes transportReady(Attributes made) {
            attributes = made;
            ready.countDown();
            return made;
        }

        @Override
        public void transportTerminated() {
            terminated.countDown();
        }

        OfServed call() throws Exception {
            return Patience.take("a call at the server", calls);
        }
    }
}
