package org.verbena.grpc;

import io.grpc.BinaryLog;
import io.grpc.BindableService;
import io.grpc.CompressorRegistry;
import io.grpc.DecompressorRegistry;
import io.grpc.ExperimentalApi;
import io.grpc.HandlerRegistry;
import io.grpc.MetricSink;
import io.grpc.Server;
import io.grpc.ServerBuilder;
import io.grpc.ServerCallExecutorSupplier;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServerStreamTracer;
import io.grpc.ServerTransportFilter;
import io.grpc.internal.KeepAliveManager;
import io.grpc.internal.ServerImplBuilder;
import io.grpc.netty.InternalNettyServerBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.netty.channel.ChannelOption;
import java.io.File;
import java.io.InputStream;
import java.net.SocketAddress;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.grpc.internal.nativetransport.GrpcCore;
import org.verbena.grpc.internal.nativetransport.NativeServer;
import org.verbena.grpc.internal.nativetransport.NativeSettings;
import org.verbena.grpc.internal.wire.Frames;

/**
 * A builder of servers that serve clients of the native transport and clients of HTTP/2 on one port, with the same
 * services and settings. With the option {@link RdmaChannelOption#PLAIN_TCP}, gRPC's usual clients
 * over TCP are served there too. Each connection's request tells which kind it is.
 *
 * <p>There is no TLS here, since the native transport has none; {@link RdmaChannelOption#PRE_SHARED_KEYS} as a child
 * option authenticates both ends of connections over Verbena, and excludes plain TCP. For gRPC's channelz it is two
 * servers, one for each kind. Experimental: names and the wire may change until the version says otherwise.
 */
@ExperimentalApi("native transport")
public final class NativeServerBuilder extends ServerBuilder<NativeServerBuilder> {
    private static final long FOREVER_NANOS = TimeUnit.DAYS.toNanos(1000);
    private static final long MIN_AGE_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final String NO_TLS = "gRPC's native transport has no TLS: leave it out to serve without"
            + " encryption, with RdmaChannelOption.PRE_SHARED_KEYS to authenticate both ends, or use"
            + " VerbenaGrpc.server, which has TLS";

    private final NettyServerBuilder http2;
    private final ServerImplBuilder messages;
    private final NativeSettings settings = new NativeSettings();

    /** Made by {@link #messages} while {@link #build()} runs. */
    @SuppressWarnings("NullAway.Init")
    private NativeServer made;

    NativeServerBuilder(SocketAddress address, RdmaEventLoopGroup group) {
        http2 = VerbenaGrpc.overRdma(NettyServerBuilder.forAddress(address), group)
                .withOption(RdmaChannelOption.ACCEPT_MESSAGES, true);
        messages = GrpcCore.serverBuilder(tracers -> {
            made = new NativeServer(tracers, settings, group);
            return made;
        });
    }

    /**
     * The same as {@link VerbenaGrpc#nativeServer(int)}.
     *
     * @param port the port to listen at; 0 selects any free port
     * @return a builder of servers without TLS
     */
    public static NativeServerBuilder forPort(int port) {
        return VerbenaGrpc.nativeServer(port);
    }

    /** For tests that count calls by themselves. */
    void withoutStatistics() {
        messages.setStatsEnabled(false);
        InternalNettyServerBuilder.setStatsEnabled(http2, false);
    }

    /**
     * Builds a server. Its port is the same for both kinds of clients.
     *
     * @return not started
     */
    @Override
    public Server build() {
        Server ofMessages = messages.build();
        NativeServer accepting = made;
        http2.channelFactory(() -> {
            RdmaServerSocketChannel listening = new RdmaServerSocketChannel();
            listening.pipeline().addLast(accepting.acceptor());
            return listening;
        });
        return new OnePortServer(ofMessages, http2.build());
    }

    /**
     * Sets an option of the listening channel.
     *
     * @param option one of Netty's or of {@link RdmaChannelOption}
     * @param value for it
     * @param <T> of the value
     * @return this
     */
    public <T> NativeServerBuilder withOption(ChannelOption<T> option, T value) {
        http2.withOption(option, value);
        return this;
    }

    /**
     * Sets an option of the connections.
     *
     * @param option one of Netty's or of {@link RdmaChannelOption}
     * @param value for it
     * @param <T> of the value
     * @return this
     */
    public <T> NativeServerBuilder withChildOption(ChannelOption<T> option, T value) {
        http2.withChildOption(option, value);
        settings.option(option, value);
        return this;
    }

    /**
     * How much of a call's messages the client may send ahead.
     *
     * @param bytes {@value Frames#MIN_WINDOW_BYTES} or more; by default 4 MiB for native clients, and gRPC's default
     *     for those of HTTP/2
     * @return this
     */
    public NativeServerBuilder flowControlWindow(int bytes) {
        settings.windowBytes = NativeChannelBuilder.checkAtLeast("flowControlWindow", bytes, Frames.MIN_WINDOW_BYTES);
        http2.flowControlWindow(bytes);
        return this;
    }

    /**
     * How many calls a connection may have at once.
     *
     * @param calls 1 or more; by default 10,000 for native clients, and no limit for those of HTTP/2
     * @return this
     */
    public NativeServerBuilder maxConcurrentCallsPerConnection(int calls) {
        settings.maxStreams = NativeChannelBuilder.checkAtLeast("maxConcurrentCallsPerConnection", calls, 1);
        http2.maxConcurrentCallsPerConnection(calls);
        return this;
    }

    /** What gRPC's two servers have in common. */
    private NativeServerBuilder both(Consumer<ServerBuilder<?>> change) {
        change.accept(messages);
        change.accept(http2);
        return this;
    }

    @Override
    public NativeServerBuilder directExecutor() {
        return both(builder -> builder.directExecutor());
    }

    @Override
    public NativeServerBuilder executor(Executor executor) {
        return both(builder -> builder.executor(executor));
    }

    @Override
    public NativeServerBuilder callExecutor(ServerCallExecutorSupplier supplier) {
        return both(builder -> builder.callExecutor(supplier));
    }

    @Override
    public NativeServerBuilder addService(ServerServiceDefinition service) {
        return both(builder -> builder.addService(service));
    }

    @Override
    public NativeServerBuilder addService(BindableService service) {
        return addService(service.bindService());
    }

    @Override
    public NativeServerBuilder intercept(ServerInterceptor interceptor) {
        return both(builder -> builder.intercept(interceptor));
    }

    @Override
    public NativeServerBuilder addTransportFilter(ServerTransportFilter filter) {
        return both(builder -> builder.addTransportFilter(filter));
    }

    @Override
    public NativeServerBuilder addStreamTracerFactory(ServerStreamTracer.Factory factory) {
        return both(builder -> builder.addStreamTracerFactory(factory));
    }

    @Override
    public NativeServerBuilder fallbackHandlerRegistry(HandlerRegistry registry) {
        return both(builder -> builder.fallbackHandlerRegistry(registry));
    }

    @Override
    public NativeServerBuilder decompressorRegistry(DecompressorRegistry registry) {
        return both(builder -> builder.decompressorRegistry(registry));
    }

    @Override
    public NativeServerBuilder compressorRegistry(CompressorRegistry registry) {
        return both(builder -> builder.compressorRegistry(registry));
    }

    @Override
    public NativeServerBuilder setBinaryLog(BinaryLog log) {
        return both(builder -> builder.setBinaryLog(log));
    }

    @Override
    public NativeServerBuilder addMetricSink(MetricSink sink) {
        return both(builder -> builder.addMetricSink(sink));
    }

    /** Always fails: the native transport has no TLS. */
    @Override
    public NativeServerBuilder useTransportSecurity(File certChain, File privateKey) {
        throw new UnsupportedOperationException(NO_TLS);
    }

    /** Always fails: the native transport has no TLS. */
    @Override
    public NativeServerBuilder useTransportSecurity(InputStream certChain, InputStream privateKey) {
        throw new UnsupportedOperationException(NO_TLS);
    }

    @Override
    public NativeServerBuilder handshakeTimeout(long timeout, TimeUnit unit) {
        return both(builder -> builder.handshakeTimeout(timeout, unit));
    }

    @Override
    public NativeServerBuilder keepAliveTime(long time, TimeUnit unit) {
        http2.keepAliveTime(time, unit); // checks it as well
        long nanos = unit.toNanos(time);
        settings.keepAliveNanos =
                nanos >= FOREVER_NANOS ? NativeSettings.NEVER : KeepAliveManager.clampKeepAliveTimeInNanos(nanos);
        return this;
    }

    @Override
    public NativeServerBuilder keepAliveTimeout(long timeout, TimeUnit unit) {
        http2.keepAliveTimeout(timeout, unit);
        settings.keepAliveTimeoutNanos = KeepAliveManager.clampKeepAliveTimeoutInNanos(unit.toNanos(timeout));
        return this;
    }

    @Override
    public NativeServerBuilder maxConnectionIdle(long time, TimeUnit unit) {
        http2.maxConnectionIdle(time, unit);
        settings.maxIdleNanos = age(time, unit);
        return this;
    }

    @Override
    public NativeServerBuilder maxConnectionAge(long time, TimeUnit unit) {
        http2.maxConnectionAge(time, unit);
        settings.maxAgeNanos = age(time, unit);
        return this;
    }

    @Override
    public NativeServerBuilder maxConnectionAgeGrace(long time, TimeUnit unit) {
        http2.maxConnectionAgeGrace(time, unit);
        long nanos = unit.toNanos(time);
        settings.maxAgeGraceNanos = nanos >= FOREVER_NANOS ? NativeSettings.NEVER : nanos;
        return this;
    }

    /** At least a second, as elsewhere in gRPC. */
    private static long age(long time, TimeUnit unit) {
        long nanos = unit.toNanos(time);
        return nanos >= FOREVER_NANOS ? NativeSettings.NEVER : Math.max(nanos, MIN_AGE_NANOS);
    }

    @Override
    public NativeServerBuilder permitKeepAliveTime(long time, TimeUnit unit) {
        http2.permitKeepAliveTime(time, unit);
        settings.permitKeepAliveNanos = unit.toNanos(time);
        return this;
    }

    @Override
    public NativeServerBuilder permitKeepAliveWithoutCalls(boolean permit) {
        http2.permitKeepAliveWithoutCalls(permit);
        settings.permitKeepAliveWithoutCalls = permit;
        return this;
    }

    @Override
    public NativeServerBuilder maxInboundMessageSize(int bytes) {
        http2.maxInboundMessageSize(bytes);
        settings.maxMessageBytes = bytes;
        return this;
    }

    @Override
    public NativeServerBuilder maxInboundMetadataSize(int bytes) {
        http2.maxInboundMetadataSize(bytes);
        settings.maxFieldsBytes = bytes;
        return this;
    }
}
