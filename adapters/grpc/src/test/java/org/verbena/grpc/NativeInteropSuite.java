package org.verbena.grpc;

import io.grpc.ForwardingServerBuilder;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Server;
import io.grpc.ServerBuilder;
import io.grpc.testing.integration.AbstractInteropTest;
import java.net.InetSocketAddress;
import org.junit.AfterClass;
import org.verbena.api.RdmaEventLoopGroup;

/**
 * gRPC's own interoperability suite over the native transport, all of it that needs no credentials for a cloud. A
 * subclass names provider and address.
 */
public abstract class NativeInteropSuite extends AbstractInteropTest {
    private static final int WINDOW_BYTES = 65 * 1024;

    private static RdmaEventLoopGroup group;

    private Server listening;

    /** Which provider. */
    protected abstract String provider();

    /** Where the server listens. */
    protected String host() {
        return "127.0.0.1";
    }

    private RdmaEventLoopGroup group() {
        synchronized (NativeInteropSuite.class) {
            if (group == null) {
                group = new RdmaEventLoopGroup(provider(), 3);
            }
            return group;
        }
    }

    @AfterClass
    public static void endGroup() {
        synchronized (NativeInteropSuite.class) {
            if (group != null) {
                group.close();
                group = null;
            }
        }
    }

    @Override
    protected ServerBuilder<?> getServerBuilder() {
        NativeServerBuilder builder = VerbenaGrpc.nativeServer(new InetSocketAddress(host(), 0), group())
                .flowControlWindow(WINDOW_BYTES)
                .maxInboundMessageSize(MAX_MESSAGE_SIZE);
        builder.withoutStatistics(); // the suite counts by itself
        return new Remembering(builder.addStreamTracerFactory(createCustomCensusTracerFactory()));
    }

    @Override
    protected ManagedChannelBuilder<?> createChannelBuilder() {
        NativeChannelBuilder builder = VerbenaGrpc.nativeChannel(host(), listening.getPort(), group())
                .usePlaintext()
                .http2Fallback(false)
                .flowControlWindow(WINDOW_BYTES)
                .maxInboundMessageSize(MAX_MESSAGE_SIZE);
        builder.withoutStatistics();
        return builder.intercept(createCensusStatsClientInterceptor());
    }

    /** The suite does not tell its subclasses which port it is. */
    private final class Remembering extends ForwardingServerBuilder<Remembering> {
        private final ServerBuilder<?> builder;

        Remembering(ServerBuilder<?> builder) {
            this.builder = builder;
        }

        @Override
        protected ServerBuilder<?> delegate() {
            return builder;
        }

        @Override
        public Server build() {
            listening = super.build();
            return listening;
        }
    }
}
