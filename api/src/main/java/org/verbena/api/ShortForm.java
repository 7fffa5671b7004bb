package org.verbena.api;

import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.BlockingOperationException;
import io.netty.util.concurrent.EventExecutor;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ProviderChoice;
import org.verbena.transport.ProviderSet;
import org.verbena.transport.spi.CompletionLoopOptions;
import org.verbena.transport.spi.ConnectionException;

/** The parts that {@link RdmaServer} and {@link RdmaClient} share. */
final class ShortForm {

    /** The number of event loops of a server: one per processor, but no more than most servers can use. */
    static final int SERVER_THREADS = Math.clamp(Runtime.getRuntime().availableProcessors(), 1, 8);

    /** Long enough for CLOSE frames in flight. */
    static final int CLOSE_MILLIS = 5_000;

    /** What a server announces in the handshake: it takes requests that say how long their client waits. */
    static final int TAKES_TIMED_REQUESTS = 1;

    /** The same: it answers a fence, and closes when its client leaves. */
    static final int TAKES_FENCES = 2;

    private static final int MAX_PORT = 65_535;

    private ShortForm() {}

    /** Names are looked up here, because the provider is chosen for the address. */
    static InetSocketAddress resolve(String purpose, String host, int port, int leastPort) {
        if (host == null || host.isBlank()) {
            throw new IllegalArgumentException(purpose + "port " + port + ": the host is "
                    + (host == null ? "null" : "blank") + "; name one, or say localhost");
        }
        if (port < leastPort || port > MAX_PORT) {
            throw new IllegalArgumentException(
                    purpose + host + ":" + port + ": the port is not within " + leastPort + " to " + MAX_PORT);
        }
        try {
            return new InetSocketAddress(InetAddress.getByName(host), port);
        } catch (UnknownHostException unknown) {
            throw new ConnectionException.Unreachable(
                    purpose + host + ":" + port + ": looking up the name failed: no such host", unknown);
        }
    }

    /** Throws if the calling thread is the one that has to complete the future. */
    static void checkMayWait(EventExecutor executor) {
        if (executor.inEventLoop()) {
            throw new BlockingOperationException("do not wait on the event loop, which completes this future: add a"
                    + " listener or a stage, wait on another thread, or build with virtualThreads(true)");
        }
    }

    /** Throws if the calling thread is one of the group's. */
    static void checkMayWait(RdmaEventLoopGroup group, String call, String remedy) {
        if (group.isOnLoop()) {
            throw new BlockingOperationException("do not wait on the event loop: " + call
                    + " waits for what this thread has to do; " + remedy + ", or call it on another thread");
        }
    }

    /** In nanoseconds, saturating. */
    static long positive(String name, Duration value) {
        Objects.requireNonNull(value, () -> name + " is null");
        if (!value.isPositive()) {
            throw new IllegalArgumentException(name + " " + value + " is not positive");
        }
        return TimeUnit.NANOSECONDS.convert(value);
    }

    static long positive(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + " " + value + " is below 1");
        }
        return value;
    }

    /** Loops of all providers that a server is to listen with. */
    static RdmaEventLoopGroup newServerGroup(
            String providers, InetSocketAddress address, int threads, CompletionLoopOptions options) {
        return new RdmaEventLoopGroup(ProviderSet.choose(providers, address), threads, null, options);
    }

    static RdmaEventLoopGroup newGroup(
            String provider, @Nullable InetSocketAddress address, int threads, CompletionLoopOptions options) {
        return new RdmaEventLoopGroup(ProviderChoice.choose(provider, address), threads, null, options);
    }

    /** Waits, and throws the failure unchanged. */
    static ChannelFuture await(ChannelFuture future) {
        return future.syncUninterruptibly();
    }

    /** For options out of a map, where each value has its option's type. */
    @SuppressWarnings("unchecked")
    static ChannelOption<Object> untyped(ChannelOption<?> option) {
        return (ChannelOption<Object>) option;
    }
}
