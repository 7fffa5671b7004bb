package org.verbena.grpc.internal.nativetransport;

import com.google.common.base.Throwables;
import io.grpc.MetricRecorder;
import io.grpc.ServerStreamTracer;
import io.grpc.Status;
import io.grpc.internal.InternalServer;
import io.grpc.internal.ManagedClientTransport;
import io.grpc.internal.ServerImplBuilder;
import io.grpc.internal.SimpleDisconnectError;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What differs in {@code io.grpc.internal} between the supported versions of grpc-core, 1.73 to 1.85. Verbena is
 * compiled against the newest. Two differences are elsewhere: {@link InboundBuffer#readBytes(java.nio.ByteBuffer)} and
 * {@link NativeOrHttp2} have methods of older versions besides those of the newest.
 */
public final class GrpcCore {
    private GrpcCore() {}

    /** Why a client's connection takes no more calls, for gRPC's metrics. */
    enum Disconnect {
        SHUTDOWN,
        TIMED_OUT,
        UNKNOWN
    }

    /** {@code Listener.transportShutdown(Status)} of 1.78 and before; null with later versions. */
    private static final @Nullable Method TRANSPORT_SHUTDOWN = olderTransportShutdown();

    private static @Nullable Method olderTransportShutdown() {
        try {
            return ManagedClientTransport.Listener.class.getMethod("transportShutdown", Status.class);
        } catch (NoSuchMethodException newer) {
            return null;
        }
    }

    /** Tells gRPC that a client's connection takes no more calls. */
    static void transportShutdown(ManagedClientTransport.Listener to, Status status, Disconnect why) {
        if (TRANSPORT_SHUTDOWN == null) {
            Newer.transportShutdown(to, status, why);
            return;
        }
        call(TRANSPORT_SHUTDOWN, to, status);
    }

    /** Calls a method of gRPC's, whose failure is the caller's as if it were called directly. */
    static void call(Method method, Object of, Object argument) {
        try {
            method.invoke(of, argument);
        } catch (IllegalAccessException closed) {
            throw new IllegalStateException("io.grpc.internal is not open to Verbena", closed);
        } catch (InvocationTargetException failed) {
            Throwable cause = Objects.requireNonNull(failed.getCause());
            Throwables.throwIfUnchecked(cause);
            throw new IllegalStateException("gRPC failed at the end of a connection", cause);
        }
    }

    /**
     * A builder of servers on a transport.
     *
     * @param transport makes it from the tracers of calls
     * @return gRPC's builder
     */
    public static ServerImplBuilder serverBuilder(
            Function<List<? extends ServerStreamTracer.Factory>, InternalServer> transport) {
        return new ServerImplBuilder(new Transport(transport));
    }

    /** Uses classes that older versions do not have. */
    private static final class Newer {
        static void transportShutdown(ManagedClientTransport.Listener to, Status status, Disconnect why) {
            to.transportShutdown(
                    status,
                    switch (why) {
                        case SHUTDOWN -> SimpleDisconnectError.SUBCHANNEL_SHUTDOWN;
                        case TIMED_OUT -> SimpleDisconnectError.CONNECTION_TIMED_OUT;
                        case UNKNOWN -> SimpleDisconnectError.UNKNOWN;
                    });
        }
    }

    /** Has the methods of all versions. */
    private static final class Transport implements ServerImplBuilder.ClientTransportServersBuilder {
        private final Function<List<? extends ServerStreamTracer.Factory>, InternalServer> make;

        Transport(Function<List<? extends ServerStreamTracer.Factory>, InternalServer> make) {
            this.make = make;
        }

        @Override
        public InternalServer buildClientTransportServers(
                List<? extends ServerStreamTracer.Factory> tracers, MetricRecorder metrics) {
            return make.apply(tracers);
        }

        /** The method of gRPC 1.79 and before; 1.82 has the one above. */
        @SuppressWarnings({"unused", "EffectivelyPrivate"}) // gRPC calls it
        public InternalServer buildClientTransportServers(List<? extends ServerStreamTracer.Factory> tracers) {
            return make.apply(tracers);
        }
    }
}
