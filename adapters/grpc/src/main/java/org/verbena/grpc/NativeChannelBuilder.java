package org.verbena.grpc;

import io.grpc.Attributes;
import io.grpc.CallCredentials;
import io.grpc.ChannelCredentials;
import io.grpc.CompositeCallCredentials;
import io.grpc.CompositeChannelCredentials;
import io.grpc.ExperimentalApi;
import io.grpc.ForwardingChannelBuilder2;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannelBuilder;
import io.grpc.internal.ClientTransportFactory;
import io.grpc.internal.GrpcUtil;
import io.grpc.internal.KeepAliveManager;
import io.grpc.internal.ManagedChannelImplBuilder;
import io.grpc.netty.InternalNettyChannelBuilder;
import io.grpc.netty.NettyChannelBuilder;
import io.netty.channel.ChannelOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.Carrier;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.internal.nativetransport.NativeAttributes;
import org.verbena.grpc.internal.nativetransport.NativeSettings;
import org.verbena.grpc.internal.nativetransport.NativeTransportFactory;
import org.verbena.grpc.internal.wire.Frames;

/**
 * A builder of client channels whose calls are messages of Verbena's protocol, without HTTP/2. Stubs, interceptors,
 * deadlines, metadata, compression, name resolvers and load balancers work as over HTTP/2. A server that rejects such a
 * connection is called by HTTP/2 over Verbena, which the log says for each connection, and the attribute {@link
 * #CARRIER} shows for each call, unless {@link #http2Fallback http2Fallback(false)} forbids it.
 *
 * <p>There is no TLS: {@link #usePlaintext()} must be called, and with {@link RdmaChannelOption#PRE_SHARED_KEYS} both
 * ends authenticate each other. Experimental: names and the wire may change until the version says otherwise.
 */
@ExperimentalApi("native transport")
public final class NativeChannelBuilder extends ForwardingChannelBuilder2<NativeChannelBuilder> {

    /** What carries a call's connection. Calls over HTTP/2 do not have this attribute. */
    public static final Attributes.Key<Carrier> CARRIER = NativeAttributes.CARRIER;

    private static final String NO_TLS = "gRPC's native transport has no TLS: call usePlaintext() to send without"
            + " encryption, with RdmaChannelOption.PRE_SHARED_KEYS to authenticate both ends, or use"
            + " VerbenaGrpc.channel, which has TLS";

    private final String target;
    private final RdmaEventLoopGroup group;
    private final ManagedChannelImplBuilder managed;
    private final NativeSettings settings = new NativeSettings();
    private final List<Consumer<NettyChannelBuilder>> forHttp2 = new ArrayList<>();
    private boolean plaintext;
    private boolean fallsBack = true;

    NativeChannelBuilder(String target, RdmaEventLoopGroup group) {
        this(target, null, null, group);
    }

    private NativeChannelBuilder(
            String target,
            @Nullable ChannelCredentials channelCredentials,
            @Nullable CallCredentials callCredentials,
            RdmaEventLoopGroup group) {
        if (group.ladder() != null) {
            throw new IllegalArgumentException("a native channel does not climb a ladder: give it loops of a provider,"
                    + " or use VerbenaGrpc.channel with LadderOptions");
        }
        this.target = target;
        this.group = group;
        managed = new ManagedChannelImplBuilder(
                target,
                channelCredentials,
                callCredentials,
                this::newFactory,
                () -> plaintext ? GrpcUtil.DEFAULT_PORT_PLAINTEXT : GrpcUtil.DEFAULT_PORT_SSL);
        managed.proxyDetector(VerbenaGrpc.NO_PROXY);
    }

    /**
     * The same as {@link VerbenaGrpc#nativeChannel(String, int)}.
     *
     * @param host a name or address
     * @param port the server's port
     * @return a builder, on which {@code usePlaintext()} must be called
     */
    public static NativeChannelBuilder forAddress(String host, int port) {
        return VerbenaGrpc.nativeChannel(host, port);
    }

    /**
     * The same as {@link VerbenaGrpc#nativeChannel(String, ChannelCredentials)} without credentials of calls.
     *
     * @param target for example {@code verbena:///one:7471,two:7471}
     * @return a builder
     */
    public static NativeChannelBuilder forTarget(String target) {
        return VerbenaGrpc.nativeChannel(target, InsecureChannelCredentials.create());
    }

    static NativeChannelBuilder of(String target, ChannelCredentials credentials, RdmaEventLoopGroup group) {
        ChannelCredentials transport = credentials;
        CallCredentials calls = null;
        while (transport instanceof CompositeChannelCredentials both) {
            CallCredentials inner = both.getCallCredentials();
            calls = calls == null ? inner : new CompositeCallCredentials(inner, calls);
            transport = both.getChannelCredentials();
        }
        if (!(transport instanceof InsecureChannelCredentials)) {
            throw new IllegalArgumentException(
                    transport.getClass().getSimpleName() + " cannot be used: gRPC's native transport has no TLS. Use"
                            + " InsecureChannelCredentials, with RdmaChannelOption.PRE_SHARED_KEYS to authenticate"
                            + " both ends, or VerbenaGrpc.overRdma with a NettyChannelBuilder, which has TLS");
        }
        return new NativeChannelBuilder(target, transport, calls, group).usePlaintext();
    }

    @Override
    protected ManagedChannelBuilder<?> delegate() {
        return managed;
    }

    /** For tests that count calls by themselves. */
    void withoutStatistics() {
        managed.setStatsEnabled(false);
    }

    /**
     * Whether servers that reject a native connection are called by HTTP/2; true by default. The same options apply
     * there, pre-shared keys included.
     *
     * @param enabled false to fail with {@code UNAVAILABLE} instead
     * @return this
     */
    public NativeChannelBuilder http2Fallback(boolean enabled) {
        fallsBack = enabled;
        return this;
    }

    /**
     * How much of a call's messages the server may send ahead.
     *
     * @param bytes {@value Frames#MIN_WINDOW_BYTES} or more; 4 MiB by default
     * @return this
     */
    public NativeChannelBuilder flowControlWindow(int bytes) {
        settings.windowBytes = checkAtLeast("flowControlWindow", bytes, Frames.MIN_WINDOW_BYTES);
        forHttp2.add(builder -> builder.flowControlWindow(bytes));
        return this;
    }

    static int checkAtLeast(String name, int value, int min) {
        if (value < min) {
            throw new IllegalArgumentException(name + " is " + value + ", and must be " + min + " or more");
        }
        return value;
    }

    /**
     * Sets an option of the connections.
     *
     * @param option one of Netty's or of {@link RdmaChannelOption}
     * @param value for it
     * @param <T> of the value
     * @return this
     */
    public <T> NativeChannelBuilder withOption(ChannelOption<T> option, T value) {
        settings.option(option, value);
        forHttp2.add(builder -> builder.withOption(option, value));
        return this;
    }

    @Override
    public NativeChannelBuilder usePlaintext() {
        plaintext = true;
        return this;
    }

    /** Always fails: the native transport has no TLS. */
    @Override
    public NativeChannelBuilder useTransportSecurity() {
        throw new UnsupportedOperationException(NO_TLS);
    }

    @Override
    public NativeChannelBuilder maxInboundMessageSize(int bytes) {
        settings.maxMessageBytes = checkAtLeast("maxInboundMessageSize", bytes, 0);
        return this;
    }

    @Override
    public NativeChannelBuilder maxInboundMetadataSize(int bytes) {
        settings.maxFieldsBytes = checkAtLeast("maxInboundMetadataSize", bytes, 1);
        return this;
    }

    /** At least 10 s, as elsewhere in gRPC. */
    @Override
    public NativeChannelBuilder keepAliveTime(long time, TimeUnit unit) {
        long nanos = unit.toNanos(time);
        if (nanos <= 0) {
            throw new IllegalArgumentException("keepAliveTime must be more than 0");
        }
        settings.keepAliveNanos = nanos >= TimeUnit.DAYS.toNanos(1000)
                ? NativeSettings.NEVER
                : KeepAliveManager.clampKeepAliveTimeInNanos(nanos);
        forHttp2.add(builder -> builder.keepAliveTime(time, unit));
        return this;
    }

    @Override
    public NativeChannelBuilder keepAliveTimeout(long timeout, TimeUnit unit) {
        if (timeout <= 0) {
            throw new IllegalArgumentException("keepAliveTimeout must be more than 0");
        }
        settings.keepAliveTimeoutNanos = KeepAliveManager.clampKeepAliveTimeoutInNanos(unit.toNanos(timeout));
        forHttp2.add(builder -> builder.keepAliveTimeout(timeout, unit));
        return this;
    }

    @Override
    public NativeChannelBuilder keepAliveWithoutCalls(boolean enable) {
        settings.keepAliveWithoutCalls = enable;
        forHttp2.add(builder -> builder.keepAliveWithoutCalls(enable));
        return this;
    }

    private ClientTransportFactory newFactory() {
        if (!plaintext) {
            throw new IllegalStateException(NO_TLS);
        }
        ClientTransportFactory http2 = null;
        if (fallsBack) {
            NettyChannelBuilder builder = VerbenaGrpc.overRdma(NettyChannelBuilder.forTarget(target), group)
                    .usePlaintext()
                    .maxInboundMessageSize(settings.maxMessageBytes)
                    .maxInboundMetadataSize(settings.maxFieldsBytes);
            forHttp2.forEach(setting -> setting.accept(builder));
            http2 = Objects.requireNonNull(InternalNettyChannelBuilder.buildTransportFactory(builder));
        }
        return new NativeTransportFactory(settings, group, http2);
    }
}
