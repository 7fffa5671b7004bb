package org.verbena.grpc.internal.nativetransport;

import com.google.common.util.concurrent.ListenableFuture;
import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ClientStreamTracer;
import io.grpc.InternalChannelz.SocketStats;
import io.grpc.InternalLogId;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.internal.ClientStream;
import io.grpc.internal.ConnectionClientTransport;
import io.grpc.internal.DisconnectError;
import java.net.SocketAddress;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.internal.nativetransport.GrpcCore.Disconnect;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.protocol.PrivateData;

/**
 * A connection that is native, or of HTTP/2 if the server rejects the native one. gRPC gives it calls once one of the
 * two is ready, so none moves from one to the other.
 */
final class NativeOrHttp2 implements ConnectionClientTransport {
    private static final Logger LOG = LoggerFactory.getLogger(NativeOrHttp2.class);

    private final NativeClientTransport first;
    private final RdmaEventLoopGroup group;
    private final SocketAddress address;
    private final @Nullable Supplier<ConnectionClientTransport> http2;

    /** Changes at most once, from the first to the other, before either is ready. */
    private volatile ConnectionClientTransport current;

    /** gRPC has shut it down; guarded by this. */
    private boolean shut;

    NativeOrHttp2(
            NativeClientTransport first,
            RdmaEventLoopGroup group,
            SocketAddress address,
            @Nullable Supplier<ConnectionClientTransport> http2) {
        this.first = first;
        this.group = group;
        this.address = address;
        this.http2 = http2;
        current = first;
    }

    @Override
    public @Nullable Runnable start(Listener listener) {
        return first.start(new First(listener), group.next());
    }

    @Override
    public void shutdown(Status reason) {
        transportToShut().shutdown(reason);
    }

    @Override
    public void shutdownNow(Status reason) {
        transportToShut().shutdownNow(reason);
    }

    private synchronized ConnectionClientTransport transportToShut() {
        shut = true;
        return current;
    }

    @Override
    public ClientStream newStream(
            MethodDescriptor<?, ?> method, Metadata headers, CallOptions callOptions, ClientStreamTracer[] tracers) {
        return current.newStream(method, headers, callOptions, tracers);
    }

    @Override
    public void ping(PingCallback callback, Executor executor) {
        current.ping(callback, executor);
    }

    @Override
    public Attributes getAttributes() {
        return current.getAttributes();
    }

    @Override
    public ListenableFuture<SocketStats> getStats() {
        return current.getStats();
    }

    @Override
    public InternalLogId getLogId() {
        return first.getLogId(); // channelz knows the connection by it
    }

    @Override
    public String toString() {
        return current.toString();
    }

    /** Whether a server of Verbena's protocol answered: where nobody listens, HTTP/2 would not help. */
    private static boolean isRejection(@Nullable Throwable cause) {
        for (Throwable next = cause; next != null; next = next.getCause()) {
            if (next instanceof ConnectionException.Rejected rejected
                    && PrivateData.reason(rejected.privateData()) != null) {
                return true;
            }
        }
        return false;
    }

    /** Listens to the native one. A rejection is not passed on if HTTP/2 is tried; all else is. */
    private final class First implements Listener {
        private final Listener to;
        private boolean rejected;

        First(Listener to) {
            this.to = to;
        }

        @Override
        public void transportShutdown(Status status, DisconnectError error) {
            if (!fallsBack(status)) {
                to.transportShutdown(status, error);
            }
        }

        /** The same with gRPC before 1.79. */
        @SuppressWarnings({"unused", "EffectivelyPrivate"}) // gRPC calls it
        public void transportShutdown(Status status) {
            if (!fallsBack(status)) {
                GrpcCore.transportShutdown(to, status, Disconnect.UNKNOWN);
            }
        }

        private boolean fallsBack(Status status) {
            Supplier<ConnectionClientTransport> other = http2;
            synchronized (NativeOrHttp2.this) {
                if (other != null && !shut && isRejection(status.getCause())) {
                    rejected = true;
                    current = other.get();
                }
            }
            if (rejected) {
                LOG.warn(
                        "{} rejects gRPC's native transport; this connection uses HTTP/2: {}",
                        address,
                        String.valueOf(status.getCause()));
            }
            return rejected;
        }

        @Override
        public void transportTerminated() {
            if (!rejected) {
                to.transportTerminated();
                return;
            }
            ConnectionClientTransport other = current;
            Runnable then;
            boolean late;
            synchronized (NativeOrHttp2.this) {
                then = other.start(to);
                late = shut;
            }
            if (then != null) {
                then.run();
            }
            if (late) { // while neither was open
                other.shutdownNow(Status.UNAVAILABLE.withDescription("shut down while connecting"));
            }
        }

        @Override
        public void transportReady() {
            to.transportReady();
        }

        @Override
        public void transportInUse(boolean inUse) {
            to.transportInUse(inUse);
        }

        @Override
        public Attributes filterTransport(Attributes attributes) {
            return to.filterTransport(attributes);
        }
    }
}
