package org.verbena.grpc;

import io.grpc.ServerBuilder;
import io.grpc.netty.InternalNettyChannelBuilder;
import io.grpc.netty.InternalNettyServerBuilder;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.testing.integration.AbstractInteropTest;
import java.net.InetSocketAddress;
import org.junit.AfterClass;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;

/**
 * gRPC's own interoperability suite over Verbena, all of it that needs no credentials for a cloud. A subclass names
 * provider and address, and whether TLS is used.
 */
public abstract class InteropSuite extends AbstractInteropTest {
    private static final int WINDOW_BYTES = 65 * 1024;

    private static RdmaEventLoopGroup group;

    private RdmaServerSocketChannel listening;

    /** Which provider. */
    protected abstract String provider();

    /** Where the server listens. */
    protected String host() {
        return "127.0.0.1";
    }

    /** Whether both ends use TLS and show certificates. */
    protected abstract boolean tls();

    private RdmaEventLoopGroup group() {
        synchronized (InteropSuite.class) {
            if (group == null) {
                group = new RdmaEventLoopGroup(provider(), 3);
            }
            return group;
        }
    }

    @AfterClass
    public static void endGroup() {
        synchronized (InteropSuite.class) {
            if (group != null) {
                group.close();
                group = null;
            }
        }
    }

    @Override
    protected ServerBuilder<?> getServerBuilder() {
        NettyServerBuilder builder = VerbenaGrpc.server(new InetSocketAddress(host(), 0), group())
                .flowControlWindow(WINDOW_BYTES)
                .maxInboundMessageSize(MAX_MESSAGE_SIZE)
                .channelFactory(() -> {
                    // The suite does not tell its subclasses which port it is.
                    listening = new RdmaServerSocketChannel();
                    return listening;
                });
        if (tls()) {
            builder.sslContext(Tls.server());
        }
        // The suite counts by itself.
        InternalNettyServerBuilder.setStatsEnabled(builder, false);
        return builder.addStreamTracerFactory(createCustomCensusTracerFactory());
    }

    @Override
    protected NettyChannelBuilder createChannelBuilder() {
        int port = listening.localAddress().getPort();
        NettyChannelBuilder builder = VerbenaGrpc.channel(host(), port, group())
                .flowControlWindow(WINDOW_BYTES)
                .maxInboundMessageSize(MAX_MESSAGE_SIZE);
        if (tls()) {
            builder.sslContext(Tls.client()).overrideAuthority(Tls.NAME);
        } else {
            builder.usePlaintext();
        }
        InternalNettyChannelBuilder.setStatsEnabled(builder, false);
        return builder.intercept(createCensusStatsClientInterceptor());
    }
}
