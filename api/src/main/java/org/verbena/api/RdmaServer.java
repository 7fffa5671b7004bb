package org.verbena.api;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.netty.util.concurrent.Promise;
import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ProviderChoice;
import org.verbena.transport.spi.CompletionLoopOptions;

/**
 * A server of messages, for programs that do not use Netty otherwise. Its peers are {@link RdmaClient}s.
 *
 * <pre>{@code
 * MessageHandler echo = MessageHandler.ofBytes((exchange, message) -> exchange.send(message));
 * try (RdmaServer server = RdmaServer.bind("0.0.0.0", 7471, echo)) {
 *     ...
 * }
 * }</pre>
 *
 * <p>{@link MessageHandler} says on which thread a handler runs and what becomes of its message. While a client does
 * not accept what it is sent, the server reads nothing more from it. All methods may be called on any thread, platform
 * or virtual.
 */
public final class RdmaServer implements AutoCloseable {
    private final RdmaServerChannel channel;
    private final RdmaEventLoopGroup group;
    private final boolean ownsGroup;
    private final ChannelGroup connections;
    private final RequestCounters counters;

    private RdmaServer(
            RdmaServerChannel channel,
            RdmaEventLoopGroup group,
            boolean ownsGroup,
            ChannelGroup connections,
            RequestCounters counters) {
        this.channel = channel;
        this.group = group;
        this.ownsGroup = ownsGroup;
        this.connections = connections;
        this.counters = counters;
    }

    /**
     * Listens, with the defaults of {@link #builder()}.
     *
     * @param host a name or address of this host; {@code 0.0.0.0} or {@code ::} for all of them
     * @param port 1 to 65535, or 0 for any that is free
     * @param handler gets the messages of all clients, each on its connection's event loop
     * @return the server, listening
     * @throws org.verbena.transport.spi.ConnectionException it cannot listen there; the message says why
     */
    public static RdmaServer bind(String host, int port, MessageHandler handler) {
        return builder().bind(host, port, handler);
    }

    /**
     * Starts a server with options.
     *
     * @return a builder with the defaults
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns the address it listens on.
     *
     * @return the address, with the port that was taken
     */
    public InetSocketAddress localAddress() {
        return Objects.requireNonNull(channel.localAddress());
    }

    /**
     * Returns the port it listens on.
     *
     * @return 1 to 65535
     */
    public int port() {
        return localAddress().getPort();
    }

    /**
     * Returns the name of its provider.
     *
     * @return {@code verbs}, {@code soft} ...
     */
    public String provider() {
        return group.provider().name();
    }

    /**
     * Returns the connections that are up.
     *
     * @return a live view, for any thread
     */
    public ChannelGroup connections() {
        return connections;
    }

    /**
     * Returns how many requests were dropped before their handler, because the time that their client waits for the
     * reply was over: they waited too long for their turn.
     *
     * @return a count
     */
    public long expiredRequests() {
        return counters.expired();
    }

    /**
     * Returns the listening channel.
     *
     * @return the channel, for programs that use Netty
     */
    public RdmaServerChannel channel() {
        return channel;
    }

    /**
     * Stops listening, closes all connections in good order, ends its threads, and waits until that is done.
     * Idempotent. Handlers on virtual threads are neither interrupted nor waited for; what they send afterwards fails.
     *
     * @throws io.netty.util.concurrent.BlockingOperationException on an event loop, as in a handler: use {@link
     *     #closeAsync()} there
     */
    @Override
    public void close() {
        ShortForm.checkMayWait(group, "RdmaServer.close()", "use closeAsync()");
        close0().awaitUninterruptibly();
    }

    /**
     * Closes as {@link #close()} does, without waiting. May be called on any thread, also in a handler.
     *
     * @return done when it is closed and its threads have ended; cancelling it stops nothing
     */
    public CompletableFuture<Void> closeAsync() {
        return Futures.toCompletable(close0()).thenApply(closed -> null);
    }

    private Future<?> close0() {
        if (ownsGroup) {
            return group.shutdownGracefully(0, ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS);
        }
        Promise<Void> closed = GlobalEventExecutor.INSTANCE.newPromise();
        channel.close().addListener(listener -> connections.close().addListener(all -> closed.trySuccess(null)));
        return closed;
    }

    /** How to listen. */
    public static final class Builder {
        private final Map<ChannelOption<?>, Object> options = new LinkedHashMap<>();
        private final Map<ChannelOption<?>, Object> childOptions = new LinkedHashMap<>();
        private String provider = ProviderChoice.configured();
        private int threads = ShortForm.SERVER_THREADS;
        private CompletionLoopOptions loopOptions = CompletionLoopOptions.DEFAULTS;
        private @Nullable RdmaEventLoopGroup sharedGroup;
        private Consumer<RdmaChannel> onConnect = connected -> {};
        private boolean describeFailures;
        private boolean virtualThreads;

        private Builder() {}

        /**
         * Chooses the provider. The default is what {@value ProviderChoice#PROPERTY} says, or {@code auto}, which picks
         * one for the address.
         *
         * @param name {@code auto}, {@code verbs}, {@code soft}
         * @return this
         */
        public Builder provider(String name) {
            provider = Objects.requireNonNull(name, "the provider's name is null");
            return this;
        }

        /**
         * Sets the number of event loops, over which connections are spread.
         *
         * @param count 1 or more
         * @return this
         */
        public Builder threads(int count) {
            threads = Math.toIntExact(ShortForm.positive("threads", count));
            return this;
        }

        /**
         * Sets how the loops poll and block.
         *
         * @param value spin and batch sizes
         * @return this
         */
        public Builder loopOptions(CompletionLoopOptions value) {
            loopOptions = Objects.requireNonNull(value, "the loop options are null");
            return this;
        }

        /**
         * Uses these event loops, and their provider, instead of its own. The server does not end them.
         *
         * @param group may be shared with others
         * @return this
         */
        public Builder group(RdmaEventLoopGroup group) {
            sharedGroup = Objects.requireNonNull(group, "the group is null");
            return this;
        }

        /**
         * Sets an option of the listening channel.
         *
         * @param <T> its type
         * @param option {@code SO_BACKLOG} or {@code SO_REUSEADDR}
         * @param value its value
         * @return this
         */
        public <T> Builder serverOption(ChannelOption<T> option, T value) {
            options.put(option, value);
            return this;
        }

        /**
         * Sets an option of the connections.
         *
         * @param <T> its type
         * @param option of {@link RdmaChannelOption}, or one of Netty's that it names
         * @param value its value
         * @return this
         */
        public <T> Builder option(ChannelOption<T> option, T value) {
            childOptions.put(option, value);
            return this;
        }

        /**
         * Calls this for each new connection, on its event loop, before its first message: for instance to register
         * memory.
         *
         * @param consumer gets the active channel; must not block
         * @return this
         */
        public Builder onConnect(Consumer<RdmaChannel> consumer) {
            onConnect = Objects.requireNonNull(consumer, "onConnect is null");
            return this;
        }

        /**
         * Sends a client whose request failed the class and message of what the handler threw. Off by default, because
         * an exception's text may reveal what clients should not know. The server's log always has it, with the stack.
         *
         * @param describe whether to send it; for clients that are trusted
         * @return this
         */
        public Builder describeFailures(boolean describe) {
            describeFailures = describe;
            return this;
        }

        /**
         * Runs the handler on virtual threads, where it may block: each request on a thread of its own, concurrently
         * with others, and messages that are not requests one after another, in the order of their arrival. A message
         * stays valid until its handler returns. When 1,024 messages of a connection are unfinished, the server reads
         * nothing more from it until half of them are done. Closing the connection neither interrupts its handlers nor
         * waits for them, and what arrived before is still handled.
         *
         * <p>Off by default: the handler then runs on the event loop, which is faster and keeps all messages in order,
         * but a handler that blocks stops every connection of its loop.
         *
         * @param virtual whether to use virtual threads
         * @return this
         */
        public Builder virtualThreads(boolean virtual) {
            virtualThreads = virtual;
            return this;
        }

        /**
         * Listens.
         *
         * @param host a name or address of this host; {@code 0.0.0.0} or {@code ::} for all of them
         * @param port 1 to 65535, or 0 for any that is free
         * @param handler gets the messages of all clients
         * @return the server, listening
         * @throws org.verbena.transport.spi.ConnectionException it cannot listen there; the message says why
         * @throws org.verbena.transport.ProviderUnavailableException the provider that was named cannot work here
         */
        public RdmaServer bind(String host, int port, MessageHandler handler) {
            Objects.requireNonNull(handler, "the handler is null");
            InetSocketAddress address = ShortForm.resolve("listen on ", host, port, 0);
            boolean describe = describeFailures;
            boolean virtual = virtualThreads;
            RdmaEventLoopGroup shared = sharedGroup;
            if (shared != null) {
                ShortForm.checkMayWait(shared, "RdmaServer.bind()", "bind before the loops are busy");
            }
            RdmaEventLoopGroup group =
                    shared == null ? ShortForm.newGroup(provider, address, threads, loopOptions) : shared;
            ChannelGroup connections = new DefaultChannelGroup("verbena", GlobalEventExecutor.INSTANCE);
            RequestCounters counters = new RequestCounters(group.provider());
            ServerBootstrap bootstrap = new ServerBootstrap()
                    .group(group)
                    .channelFactory(RdmaServerChannel::new)
                    .childHandler(new ChannelInitializer<RdmaChannel>() {
                        @Override
                        protected void initChannel(RdmaChannel accepted) {
                            accepted.pipeline().addLast(new Welcome(accepted, connections, onConnect));
                            accepted.pipeline()
                                    .addLast(Messenger.ofServer(accepted, handler, virtual, describe, counters));
                        }
                    });
            options.forEach((option, value) -> bootstrap.option(ShortForm.untyped(option), value));
            childOptions.forEach((option, value) -> bootstrap.childOption(ShortForm.untyped(option), value));
            try {
                RdmaServerChannel channel = (RdmaServerChannel)
                        ShortForm.await(bootstrap.bind(address)).channel();
                return new RdmaServer(channel, group, shared == null, connections, counters);
            } catch (Throwable failure) {
                if (shared == null) {
                    group.shutdownGracefully(0, 0, TimeUnit.MILLISECONDS);
                }
                throw failure;
            }
        }
    }
}
