package org.verbena.rsocket;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelOption;
import io.netty.util.ResourceLeakDetector;
import io.rsocket.test.TransportTest;
import java.net.InetSocketAddress;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.Patience;

/** RSocket's own test of transports. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Timeout(240)
public abstract class RSocketTransportSuite implements TransportTest {
    private final ResourceLeakDetector.Level usual = ResourceLeakDetector.getLevel();
    private RdmaEventLoopGroup group;
    private TransportPair<InetSocketAddress, RdmaServerTransport.Server> pair;

    /** The provider's name. */
    protected abstract String provider();

    /** Where servers listen. */
    protected String host() {
        return "127.0.0.1";
    }

    /**
     * Whether frames are cut into random fragments, and every buffer is tracked, which takes memory that is not
     * registered.
     */
    protected boolean fragments() {
        return false;
    }

    /** Whether connections are cut at random and resumed. */
    protected boolean resumes() {
        return false;
    }

    /** The loops of both ends. */
    RdmaEventLoopGroup newGroup(CompletionLoopOptions options) {
        return new RdmaEventLoopGroup(provider(), 2, options);
    }

    @BeforeAll
    void makeLoops() {
        // Threads of the suite wait by spinning, a dozen at a time, and would take turns with spinning loops.
        group = newGroup(new CompletionLoopOptions(
                0,
                CompletionLoopOptions.DEFAULTS.maxCompletionsPerTurn(),
                CompletionLoopOptions.DEFAULTS.completionQueueDepth()));
        // With this level the suite supplies allocators that find leaks.
        ResourceLeakDetector.setLevel(
                fragments() ? ResourceLeakDetector.Level.ADVANCED : ResourceLeakDetector.Level.SIMPLE);
    }

    @AfterAll
    void endLoops() {
        ResourceLeakDetector.setLevel(usual);
        group.close();
    }

    @BeforeEach
    void connect() {
        pair = new TransportPair<>(
                () -> new InetSocketAddress(host(), 0),
                (address, server, allocator) -> {
                    Bootstrap bootstrap = new Bootstrap().group(group).remoteAddress(server.address());
                    return RdmaClientTransport.create(
                            fragments() ? bootstrap.option(ChannelOption.ALLOCATOR, allocator) : bootstrap);
                },
                (address, allocator) -> RdmaServerTransport.create(server(address, allocator)),
                fragments(),
                resumes());
    }

    private ServerBootstrap server(InetSocketAddress address, ByteBufAllocator allocator) {
        ServerBootstrap bootstrap = new ServerBootstrap().group(group).localAddress(address);
        return fragments() ? bootstrap.childOption(ChannelOption.ALLOCATOR, allocator) : bootstrap;
    }

    @Override
    public Duration getTimeout() {
        return Patience.LIMIT.multipliedBy(2);
    }

    @Override
    public TransportPair<InetSocketAddress, RdmaServerTransport.Server> getTransportPair() {
        return pair;
    }
}
