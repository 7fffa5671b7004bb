package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.netty.util.concurrent.Promise;
import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ProviderChoice;
import org.verbena.transport.spi.CompletionLoopOptions;

/**
 * A client of messages, for those who do not want to know Netty. Its peer is an {@link RdmaServer}.
 *
 * <pre>{@code
 * try (RdmaClient client = RdmaClient.connect("host", 7471)) {
 *     byte[] reply = client.request(bytes).get();
 * }
 * }</pre>
 *
 * <p>Any thread, platform or virtual, except that {@link #connect} and {@link #close} wait, which event loops must not. What is sent and not
 * yet taken by the server waits in memory: wait for the futures now and then, or ask {@link #isWritable()}.
 */
public final class RdmaClient implements AutoCloseable {
    private final RdmaChannel channel;
    private final Messenger messenger;
    private final RdmaEventLoopGroup group;
    private final boolean ownsGroup;
    private final long requestTimeoutMillis;

    private RdmaClient(
            RdmaChannel channel,
            Messenger messenger,
            RdmaEventLoopGroup group,
            boolean ownsGroup,
            long requestTimeoutMillis) {
        this.channel = channel;
        this.messenger = messenger;
        this.group = group;
        this.ownsGroup = ownsGroup;
        this.requestTimeoutMillis = requestTimeoutMillis;
    }

    /**
     * Connects, with the defaults of {@link #builder()}.
     *
     * @param host a name or address
     * @param port 1 to 65535
     * @return the client, connected
     * @throws org.verbena.transport.spi.ConnectionException it could not; the message names address, step and reason
     */
    public static RdmaClient connect(String host, int port) {
        return builder().connect(host, port);
    }

    /**
     * For options.
     *
     * @return a builder with the defaults
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Sends a message.
     *
     * @param message its ownership is taken
     * @return done when the send has completed; that the server's program has seen it, only a reply can tell
     */
    public Future<Void> send(ByteBuf message) {
        return messenger.send(Messenger.MESSAGE, 0, message);
    }

    /**
     * Sends a message.
     *
     * @param message copied
     * @return done when the send has completed
     */
    public Future<Void> send(byte[] message) {
        return send(messenger.copy(message));
    }

    /**
     * Sends a request and waits, without blocking, for its reply.
     *
     * @param message its ownership is taken
     * @return the reply, for the caller to release. Fails with {@link RequestException}, or with the connection's cause. Cancelling it gives up waiting; the
     *     request may have been sent
     */
    public Future<ByteBuf> request(ByteBuf message) {
        return request(message, requestTimeoutMillis);
    }

    /**
     * Sends a request and waits, without blocking, for its reply.
     *
     * @param message its ownership is taken
     * @param timeoutMillis how long the reply may take, 1 or more
     * @return the reply, for the caller to release; fails as {@link #request(ByteBuf)} does
     */
    public Future<ByteBuf> request(ByteBuf message, long timeoutMillis) {
        return messenger.request(message, ShortForm.positive("timeoutMillis", timeoutMillis));
    }

    /**
     * Sends a request and waits, without blocking, for its reply.
     *
     * @param message copied
     * @return the reply; fails as {@link #request(ByteBuf)} does
     */
    public Future<byte[]> request(byte[] message) {
        return request(message, requestTimeoutMillis);
    }

    /**
     * Sends a request and waits, without blocking, for its reply.
     *
     * @param message copied
     * @param timeoutMillis how long the reply may take, 1 or more
     * @return the reply; fails as {@link #request(ByteBuf)} does
     */
    public Future<byte[]> request(byte[] message, long timeoutMillis) {
        return messenger.request(message, ShortForm.positive("timeoutMillis", timeoutMillis));
    }

    /**
     * Whether what is sent next goes out soon.
     *
     * @return false while so much waits that the sender should, too
     */
    public boolean isWritable() {
        return channel.isWritable();
    }

    /**
     * Replies that came when nobody waited for them any more, and were dropped.
     *
     * @return a count
     */
    public long lateReplies() {
        return messenger.lateReplies();
    }

    /**
     * The connection, for one-sided operations and all else.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return channel;
    }

    /**
     * Which provider it runs on.
     *
     * @return {@code verbs}, {@code soft} ...
     */
    public String provider() {
        return group.provider().name();
    }

    /**
     * Sends what was given to it, closes the connection in good order, ends its threads, and waits for it. Requests without a reply fail. Idempotent.
     *
     * @throws io.netty.util.concurrent.BlockingOperationException on an event loop, as in a listener: use {@link #closeAsync()} there
     */
    @Override
    public void close() {
        ShortForm.checkMayWait(group, "RdmaClient.close()", "use closeAsync()");
        closeAsync().awaitUninterruptibly();
    }

    /**
     * Closes as {@link #close()} does, without waiting for it. Any thread, the event loop included.
     *
     * @return done when it is closed and its threads have ended
     */
    public Future<?> closeAsync() {
        return ownsGroup ? group.shutdownGracefully(0, ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS) : channel.close();
    }

    /** How to connect. */
    public static final class Builder {
        private final Map<ChannelOption<?>, Object> options = new LinkedHashMap<>();
        private String provider = ProviderChoice.configured();
        private CompletionLoopOptions loopOptions = CompletionLoopOptions.DEFAULTS;
        private @Nullable RdmaEventLoopGroup sharedGroup;
        private long requestTimeoutMillis = 30_000;
        private @Nullable String localHost;
        private MessageHandler handler = (exchange, message) -> {
            throw new IllegalStateException("the client was built without onMessage");
        };

        private Builder() {}

        /**
         * Chooses the provider; by default what {@value ProviderChoice#PROPERTY} says, or {@code auto}, which decides for the address.
         *
         * @param name {@code auto}, {@code verbs}, {@code soft}
         * @return this
         */
        public Builder provider(String name) {
            provider = Objects.requireNonNull(name, "the provider's name is null");
            return this;
        }

        /**
         * Sets how the loop polls and blocks.
         *
         * @param value spin and batch sizes
         * @return this
         */
        public Builder loopOptions(CompletionLoopOptions value) {
            loopOptions = Objects.requireNonNull(value, "the loop options are null");
            return this;
        }

        /**
         * Uses one of these event loops, and their provider, instead of making one. The client does not end them.
         *
         * @param group shared with others
         * @return this
         */
        public Builder group(RdmaEventLoopGroup group) {
            sharedGroup = Objects.requireNonNull(group, "the group is null");
            return this;
        }

        /**
         * Sets an option of the connection.
         *
         * @param <T> its type
         * @param option of {@link RdmaChannelOption}, or one of Netty's that it names
         * @param value its value
         * @return this
         */
        public <T> Builder option(ChannelOption<T> option, T value) {
            options.put(option, value);
            return this;
        }

        /**
         * Limits connecting, all steps together. 30 s by default.
         *
         * @param millis 1 or more
         * @return this
         */
        public Builder connectTimeoutMillis(int millis) {
            return option(
                    ChannelOption.CONNECT_TIMEOUT_MILLIS,
                    Math.toIntExact(ShortForm.positive("connectTimeoutMillis", millis)));
        }

        /**
         * Limits waiting for a reply, where {@code request} is not told. 30 s by default.
         *
         * @param millis 1 or more
         * @return this
         */
        public Builder requestTimeoutMillis(long millis) {
            requestTimeoutMillis = ShortForm.positive("requestTimeoutMillis", millis);
            return this;
        }

        /**
         * Connects from this address instead of the one that the route suggests.
         *
         * @param host a name or address of this host
         * @return this
         */
        public Builder localHost(String host) {
            localHost = Objects.requireNonNull(host, "the local host is null");
            return this;
        }

        /**
         * Hears messages of the server that are no replies. Without this they are logged as errors.
         *
         * @param value gets them on the event loop
         * @return this
         */
        public Builder onMessage(MessageHandler value) {
            handler = Objects.requireNonNull(value, "the handler is null");
            return this;
        }

        /**
         * Connects and waits for it.
         *
         * @param host a name or address
         * @param port 1 to 65535
         * @return the client, connected
         * @throws org.verbena.transport.spi.ConnectionException it could not; the message names address, step and reason
         * @throws org.verbena.transport.ProviderUnavailableException the provider that was named cannot work here
         */
        public RdmaClient connect(String host, int port) {
            InetSocketAddress address = ShortForm.resolve("connect to ", host, port, 1);
            String from = localHost;
            InetSocketAddress local = from == null ? null : ShortForm.resolve("connect from ", from, 0, 0);
            RdmaEventLoopGroup shared = sharedGroup;
            if (shared != null) {
                ShortForm.checkMayWait(shared, "RdmaClient.connect()", "use connectAsync()");
            }
            RdmaEventLoopGroup group = shared == null ? ShortForm.newGroup(provider, address, 1, loopOptions) : shared;
            MessageHandler onMessage = handler;
            Bootstrap bootstrap = new Bootstrap()
                    .group(group)
                    .channelFactory(RdmaChannel::new)
                    .handler(new ChannelInitializer<RdmaChannel>() {
                        @Override
                        protected void initChannel(RdmaChannel connecting) {
                            connecting.pipeline().addLast(new Messenger(connecting, onMessage, false, false));
                        }
                    });
            options.forEach((option, value) -> bootstrap.option(ShortForm.untyped(option), value));
            try {
                RdmaChannel channel = (RdmaChannel)
                        ShortForm.await(bootstrap.connect(address, local)).channel();
                Messenger messenger = Objects.requireNonNull(channel.pipeline().get(Messenger.class));
                return new RdmaClient(channel, messenger, group, shared == null, requestTimeoutMillis);
            } catch (Throwable failure) {
                if (shared == null) {
                    group.shutdownGracefully(0, 0, TimeUnit.MILLISECONDS);
                }
                throw failure;
            }
        }

        /**
         * Connects without waiting. The name is looked up on a virtual thread.
         *
         * @param host a name or address
         * @param port 1 to 65535
         * @return the client, or why not as {@link #connect} throws it
         */
        public Future<RdmaClient> connectAsync(String host, int port) {
            Promise<RdmaClient> promise = new DefaultPromise<>(GlobalEventExecutor.INSTANCE);
            Thread.ofVirtual().name("verbena-connect").start(() -> {
                try {
                    RdmaClient client = connect(host, port);
                    if (!promise.trySuccess(client)) {
                        client.close();
                    }
                } catch (Throwable failure) {
                    promise.tryFailure(failure);
                }
            });
            return promise;
        }
    }
}
