package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.Future;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.ladder.LadderMove;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.request.Link;
import org.verbena.api.internal.request.Links;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.RequestCounters;
import org.verbena.api.internal.request.Retries;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.internal.request.Serving;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.api.queuepair.QueuePairExchangeAddress;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.RdmaProvider;

/**
 * A client of messages, for programs that do not use Netty otherwise. Its peer is an {@link RdmaServer}.
 *
 * <pre>{@code
 * try (RdmaClient client = RdmaClient.connect("host", 7471)) {
 *     byte[] reply = client.request(bytes).get();
 * }
 * }</pre>
 *
 * <p><b>Types.</b> Methods that take the JDK's types return the JDK's: {@code byte[]} and {@link ByteBuffer} with
 * {@link CompletableFuture}. The message is copied before the call returns, and the reply is a copy on the heap. For a
 * {@code MemorySegment} pass {@code segment.asByteBuffer()}. Methods that take Netty's {@link ByteBuf} return Netty's
 * {@link Future}; ownership passes with the buffer, which is sent without a copy unless it is short.
 *
 * <p><b>Threads.</b> All methods may be called on any thread, platform or virtual, except that {@link #connect} and
 * {@link #close} wait, which event loops must not. Futures complete on the event loop of the connection. A stage that
 * was added before that runs there and must not block: use the {@code Async} methods for stages that do. Without an
 * executor these run each stage on a virtual thread. Waiting for such a future on an event loop fails at once.
 *
 * <p>Messages that the server has not accepted yet wait in memory: wait for their futures from time to time, or check
 * {@link #isWritable()}.
 */
public final class RdmaClient implements AutoCloseable {
    private final Links links;
    private final RdmaEventLoopGroup group;
    private final boolean ownsGroup;
    private final long requestTimeoutNanos;

    /** Null if it stays on its connection. */
    private final @Nullable LadderMove move;

    private RdmaClient(
            Links links,
            RdmaEventLoopGroup group,
            boolean ownsGroup,
            long requestTimeoutNanos,
            @Nullable LadderMove move) {
        this.links = links;
        this.group = group;
        this.ownsGroup = ownsGroup;
        this.requestTimeoutNanos = requestTimeoutNanos;
        this.move = move;
    }

    /**
     * Connects, with the defaults of {@link #builder()}.
     *
     * @param host a name or address
     * @param port 1 to 65535
     * @return the client, connected
     * @throws org.verbena.transport.ConnectionException it could not; the message names address, step and reason
     */
    public static RdmaClient connect(String host, int port) {
        return builder().connect(host, port);
    }

    /**
     * Starts a client with options.
     *
     * @return a builder with the defaults
     * @throws org.verbena.transport.ProviderUnavailableException nothing can work here: Netty is older than 4.2, or the
     *     JVM denies native access; the message says what to do
     */
    public static Builder builder() {
        ProviderChoice.checkRequirements();
        return new Builder();
    }

    /**
     * Sends a message.
     *
     * @param message its ownership is taken
     * @return done when the send has completed; only a reply shows that the server's program has seen the message.
     *     Fails with {@link SendLimitException} if too much {@linkplain Builder#maxPending waits to be sent}
     */
    public Future<Void> send(ByteBuf message) {
        return links.start(Operation.SEND, message, 0);
    }

    /**
     * Sends a message.
     *
     * @param message copied before this returns
     * @return done when the send has completed, as {@link #send(ByteBuf)} says
     */
    public CompletableFuture<Void> send(byte[] message) {
        return links.start(Operation.SEND, message, 0);
    }

    /**
     * Sends a message.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return done when the send has completed, as {@link #send(ByteBuf)} says
     */
    public CompletableFuture<Void> send(ByteBuffer message) {
        return links.start(Operation.SEND, message, 0);
    }

    /**
     * Sends a request. Its reply may take as long as the {@linkplain Builder#requestTimeout request timeout}. The
     * request carries the timeout, and the server drops a request whose time is over.
     *
     * @param message its ownership is taken
     * @return the reply, for the caller to release. Fails with {@link RequestException}, or with the connection's
     *     cause. Cancelling it gives up the reply; the request may have been sent
     */
    public Future<ByteBuf> request(ByteBuf message) {
        return links.start(Operation.REQUEST, message, requestTimeoutNanos);
    }

    /**
     * Sends a request.
     *
     * @param message its ownership is taken
     * @param timeout how long the reply may take; more than zero
     * @return the reply, for the caller to release; fails as {@link #request(ByteBuf)} does
     */
    public Future<ByteBuf> request(ByteBuf message, Duration timeout) {
        return links.start(Operation.REQUEST, message, ShortForm.positive("timeout", timeout));
    }

    /**
     * Sends a request. Its reply may take as long as the {@linkplain Builder#requestTimeout request timeout}.
     *
     * @param message copied before this returns
     * @return the reply; fails as {@link #request(ByteBuf)} does
     */
    public CompletableFuture<byte[]> request(byte[] message) {
        return links.start(Operation.REQUEST_BYTES, message, requestTimeoutNanos);
    }

    /**
     * Sends a request.
     *
     * @param message copied before this returns
     * @param timeout how long the reply may take; more than zero
     * @return the reply; fails as {@link #request(ByteBuf)} does
     */
    public CompletableFuture<byte[]> request(byte[] message, Duration timeout) {
        return links.start(Operation.REQUEST_BYTES, message, ShortForm.positive("timeout", timeout));
    }

    /**
     * Sends a request. Its reply may take as long as the {@linkplain Builder#requestTimeout request timeout}.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return the reply, a heap buffer of its own; fails as {@link #request(ByteBuf)} does
     */
    public CompletableFuture<ByteBuffer> request(ByteBuffer message) {
        return links.start(Operation.REQUEST_BUFFER, message, requestTimeoutNanos);
    }

    /**
     * Sends a request.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @param timeout how long the reply may take; more than zero
     * @return the reply, a heap buffer of its own; fails as {@link #request(ByteBuf)} does
     */
    public CompletableFuture<ByteBuffer> request(ByteBuffer message, Duration timeout) {
        return links.start(Operation.REQUEST_BUFFER, message, ShortForm.positive("timeout", timeout));
    }

    /**
     * Returns whether the next message will be sent soon.
     *
     * @return false while so many bytes wait to be sent that the caller should wait
     */
    public boolean isWritable() {
        return links.isWritable();
    }

    /**
     * Returns how many replies were dropped because they arrived after their request had timed out or had been
     * cancelled.
     *
     * @return a count
     */
    public long lateReplies() {
        return links.lateReplies().sum();
    }

    /**
     * Returns the connection, for one-sided operations and everything else. A {@code ByteBuf} that is written to it is
     * a message to the server's handler, as {@link #send(ByteBuf)} sends it. The connection does not change while the
     * client is open, unless the client may {@linkplain LadderOptions#withMoveUp move up}: then the connection that it
     * has left ends.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return (RdmaChannel) links.link().channel();
    }

    /**
     * Returns the name of its provider.
     *
     * @return {@code verbs}, {@code soft} ...
     */
    public String provider() {
        LadderResult ladder = ladder();
        return ladder == null ? group.provider().name() : ladder.rung();
    }

    /**
     * Returns which rung of the ladder the client uses, and why none of the better ones. It changes when the client
     * {@linkplain LadderOptions#withMoveUp moves up}.
     *
     * @return null if it was not connected by a {@linkplain Builder#ladder ladder}
     */
    public @Nullable LadderResult ladder() {
        return links.link().ladder();
    }

    /**
     * Sends what is still queued, closes the connection in good order, ends its threads, and waits until that is done.
     * Requests without a reply fail. Idempotent. Does not interrupt handlers on virtual threads, and does not wait for
     * them.
     *
     * @throws io.netty.util.concurrent.BlockingOperationException on an event loop, as in a listener: use {@link
     *     #closeAsync()} there
     */
    @Override
    public void close() {
        RdmaEventLoop.checkMayWait("RdmaClient.close()", "use closeAsync()");
        closeAsync().join();
    }

    /**
     * Closes as {@link #close()} does, without waiting. May be called on any thread, also on the event loop.
     *
     * @return done when it is closed and its threads have ended; cancelling it stops nothing
     */
    public CompletableFuture<Void> closeAsync() {
        if (move == null) {
            return ownsGroup ? endGroup() : ShortForm.close(channel());
        }
        return RdmaFutures.toCompletable(move.close())
                .thenCompose(open -> ownsGroup
                        ? endGroup()
                        : RdmaFutures.allOf(open.stream().map(ShortForm::close).toArray(CompletableFuture<?>[]::new)));
    }

    private CompletableFuture<Void> endGroup() {
        return ShortForm.done(group.shutdownGracefully(0, ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS));
    }

    /** How to connect. */
    public static final class Builder {
        private final Map<ChannelOption<?>, Object> options = new LinkedHashMap<>();
        private String provider = ProviderChoice.configured();
        private CompletionLoopOptions loopOptions = CompletionLoopOptions.DEFAULTS;
        private @Nullable RdmaEventLoopGroup sharedGroup;
        private @Nullable LadderOptions ladder;
        private long requestTimeoutNanos = TimeUnit.SECONDS.toNanos(30);
        private @Nullable String localHost;
        private boolean virtualThreads;
        private int retries;
        private SendLimit.Bounds pendingBounds = SendLimit.Bounds.DEFAULTS;
        private MessageHandler handler = (exchange, message) -> {
            throw new IllegalStateException("the client was built without onMessage");
        };

        private NameLookup names = NameLookup.SYSTEM;

        private Builder() {}

        /** A copy that a client is built from, so that the builder may be changed and used again at once. */
        private Builder(Builder original) {
            options.putAll(original.options);
            provider = original.provider;
            loopOptions = original.loopOptions;
            sharedGroup = original.sharedGroup;
            ladder = original.ladder;
            requestTimeoutNanos = original.requestTimeoutNanos;
            localHost = original.localHost;
            virtualThreads = original.virtualThreads;
            retries = original.retries;
            pendingBounds = original.pendingBounds;
            handler = original.handler;
            names = original.names;
        }

        /** Looks names up otherwise, in tests. */
        Builder names(NameLookup lookup) {
            names = lookup;
            return this;
        }

        /**
         * Chooses the provider. The default is the value of {@value ProviderChoice#PROPERTY}, or {@code auto}, which
         * picks one for the address. A named provider never falls back to another; {@code ladder} does, and is short
         * for {@link #ladder} with {@link LadderOptions#DEFAULTS}. The later of the two calls applies.
         *
         * @param name {@code auto}, {@code verbs}, {@code soft}, {@code ladder}
         * @return this
         */
        public Builder provider(String name) {
            provider = Objects.requireNonNull(name, "the provider's name is null");
            ladder = name.equals(ProviderSet.LADDER) ? LadderOptions.DEFAULTS : null;
            return this;
        }

        /**
         * Connects with the best provider that client and server have in common: see {@link RdmaLadder}. With a {@link
         * #group} it must have loops of these providers.
         *
         * @param options what is tried, and when
         * @return this
         */
        public Builder ladder(LadderOptions options) {
            ladder = Objects.requireNonNull(options, "the ladder's options are null");
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
         * Uses one of these event loops, and their provider or their {@linkplain RdmaEventLoopGroup#ladder() ladder},
         * instead of its own. The client does not end them.
         *
         * @param group may be shared with others
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
         * Limits how long connecting may take, all steps together, looking up the name included. 30 s by default.
         *
         * @param timeout more than zero, counted in milliseconds
         * @return this
         */
        public Builder connectTimeout(Duration timeout) {
            long millis = TimeUnit.NANOSECONDS.toMillis(ShortForm.positive("connectTimeout", timeout));
            return option(ChannelOption.CONNECT_TIMEOUT_MILLIS, Math.clamp(millis, 1, Integer.MAX_VALUE));
        }

        /**
         * Limits how long a reply may take if {@code request} gets no timeout. 30 s by default.
         *
         * @param timeout more than zero
         * @return this
         */
        public Builder requestTimeout(Duration timeout) {
            requestTimeoutNanos = ShortForm.positive("requestTimeout", timeout);
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
         * Sets the handler of messages from the server that are not replies. Without a handler they are logged as
         * errors.
         *
         * @param value gets them
         * @return this
         */
        public Builder onMessage(MessageHandler value) {
            handler = Objects.requireNonNull(value, "the handler is null");
            return this;
        }

        /**
         * Runs the handler of {@link #onMessage} on virtual threads, where it may block and wait for replies: one
         * message after another, in the order of their arrival. Messages that wait for the handler count as held by the
         * program. Closing the client neither interrupts the handler nor waits for it. Off by default: the handler then
         * runs on the event loop, and while it blocks, no reply arrives.
         *
         * @param virtual whether to use virtual threads
         * @return this
         */
        public Builder virtualThreads(boolean virtual) {
            virtualThreads = virtual;
            return this;
        }

        /**
         * Sends requests again that an overloaded server has refused ({@link RequestException.Overloaded}), within
         * their timeout: no sooner than the server's hint says, with twice the delay each time, and up to the same
         * delay again at random. The message is kept until then. The client retries at most a tenth as many requests as
         * are answered, plus a burst of ten, so that retries do not keep a server overloaded. 0 by default.
         *
         * @param most how often each request may be sent again, 0 or more
         * @return this
         */
        public Builder retries(int most) {
            if (most < 0) {
                throw new IllegalArgumentException("retries " + most + " is below 0");
            }
            retries = most;
            return this;
        }

        /**
         * Limits what waits to be sent: messages and requests that the transport has not taken completely. One that
         * exceeds the limit fails at once with {@link SendLimitException}, and may be sent again when an earlier one is
         * done. A message longer than {@code bytes} is sent if no other waits. 65,536 messages and 128 MiB by default.
         *
         * @param messages 1 to 4,194,304
         * @param bytes these may have together, 1 to 512 GiB
         * @return this
         */
        public Builder maxPending(int messages, long bytes) {
            pendingBounds = new SendLimit.Bounds(messages, bytes);
            return this;
        }

        /**
         * Connects, and waits until that is done. If the host is a name with several addresses, the first that the
         * resolver gives is used, as Netty does; a failure names them all. An interrupt ends the attempt.
         *
         * @param host a name or address
         * @param port 1 to 65535
         * @return the client, connected
         * @throws org.verbena.transport.ConnectionException it could not; the message names address, step and
         *     reason. If the thread is interrupted, the cause is an {@link InterruptedException}, and the thread stays
         *     interrupted
         * @throws org.verbena.transport.ProviderUnavailableException the provider that was named cannot work here
         * @throws io.netty.util.concurrent.BlockingOperationException on an event loop: use {@link #connectAsync}
         */
        public RdmaClient connect(String host, int port) {
            ShortForm.checkAddress("connect to ", host, port, 1);
            RdmaEventLoop.checkMayWait("RdmaClient.connect()", "use connectAsync()");
            return new Builder(this).connectNow(host, port);
        }

        /**
         * Connects to a peer by hand, without rdma_cm, and waits until that is done. The peer may be another client: it
         * handles this end's requests with {@link #onMessage}. Exactly one of the two ends must have an exchange that
         * {@linkplain org.verbena.transport.QueuePairExchange#answers() answers}. An interrupt ends the attempt.
         *
         * @param peer the local end, and the exchange with the peer's
         * @return the client, connected
         * @throws org.verbena.transport.ConnectionException it could not; the message names device, step and reason. An
         *     interrupt is reported as by {@link #connect(String, int)}
         * @throws UnsupportedOperationException the provider has no queue pairs that can be connected by hand
         * @throws org.verbena.transport.ProviderUnavailableException the provider that was named cannot work here
         * @throws io.netty.util.concurrent.BlockingOperationException on an event loop
         */
        public RdmaClient connect(QueuePairExchangeAddress peer) {
            if (localHost != null) {
                throw new IllegalArgumentException(
                        "connect to " + peer + ": its route has the local end, not localHost");
            }
            RdmaEventLoop.checkMayWait("RdmaClient.connect()", "connect before the loops are busy");
            return new Builder(this).connect("connect to " + peer, peer, null, System.nanoTime());
        }

        /** All of it. Waits. */
        private RdmaClient connectNow(String host, int port) {
            String purpose = "connect to " + host + ":" + port;
            ShortForm.checkNotInterrupted(purpose);
            long beganNanos = System.nanoTime();
            List<InetAddress> addresses = names.addresses(purpose, host, leftNanos(beganNanos));
            InetSocketAddress local = null;
            String from = localHost;
            if (from != null) {
                ShortForm.checkAddress("connect from ", from, 0, 0);
                List<InetAddress> own = names.addresses("connect from " + from, from, leftNanos(beganNanos));
                local = new InetSocketAddress(own.getFirst(), 0);
            }
            try {
                return connect(purpose, new InetSocketAddress(addresses.getFirst(), port), local, beganNanos);
            } catch (ConnectionException failure) {
                throw addresses.size() == 1 ? failure : ShortForm.withAddresses(failure, host, addresses);
            }
        }

        /** Of the connect timeout; 0 for no limit. */
        private long leftNanos(long beganNanos) {
            int millis = connectTimeoutMillis();
            return millis == 0
                    ? 0
                    : Math.max(1, TimeUnit.MILLISECONDS.toNanos(millis) - (System.nanoTime() - beganNanos));
        }

        private int connectTimeoutMillis() {
            return options.get(ChannelOption.CONNECT_TIMEOUT_MILLIS) instanceof Integer millis
                    ? millis
                    : ShortForm.CONNECT_MILLIS;
        }

        private RdmaClient connect(
                String purpose, SocketAddress address, @Nullable SocketAddress local, long beganNanos) {
            ShortForm.checkNotInterrupted(purpose);
            RdmaEventLoopGroup shared = sharedGroup;
            LadderOptions rungs = ladder;
            InetSocketAddress internet = address instanceof InetSocketAddress known ? known : null;
            if (rungs != null && internet == null) {
                throw new IllegalArgumentException("a ladder connects to an IP address, not to " + address);
            }
            if (rungs == null && internet != null && shared == null && provider.equals(ProviderSet.LADDER)) {
                rungs = LadderOptions.DEFAULTS; // by the system property
            }
            if (rungs == null && internet != null && shared != null) {
                rungs = shared.ladder();
            }
            RdmaEventLoopGroup group = shared != null
                    ? shared
                    : rungs == null
                            ? new RdmaEventLoopGroup(ProviderChoice.choose(provider, internet), 1, null, loopOptions)
                            : new RdmaEventLoopGroup(rungs, 1, null, loopOptions);
            Retries shares = retries > 0 ? new Retries(retries) : null;
            Links links = new Links(rungs != null && rungs.moveUp() != null);
            Bootstrap bootstrap = new Bootstrap().group(group).handler(new ChannelInitializer<RdmaChannel>() {
                @Override
                protected void initChannel(RdmaChannel connecting) {
                    connecting
                            .pipeline()
                            .addLast(Messenger.ofClient(connecting.host(), serving(connecting, shares), links));
                }
            });
            options.forEach((option, value) -> bootstrap.option(ShortForm.untyped(option), value));
            int timeoutMillis = connectTimeoutMillis();
            int lookupMillis = (int) TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganNanos);
            if (timeoutMillis > 0 && lookupMillis > 0) {
                bootstrap.option(ChannelOption.CONNECT_TIMEOUT_MILLIS, Math.max(1, timeoutMillis - lookupMillis));
            }
            try {
                RdmaChannel channel;
                if (rungs == null || internet == null) {
                    Channel registered = ShortForm.register(purpose, bootstrap.channelFactory(RdmaChannel::new));
                    ShortForm.awaitOpen(purpose, registered.connect(address, local));
                    channel = (RdmaChannel) registered;
                } else {
                    if (local != null) {
                        bootstrap.localAddress(local);
                    }
                    Future<RdmaChannel> connecting = RdmaLadder.connectMessages(bootstrap, internet, rungs);
                    ShortForm.await(purpose, connecting, group);
                    channel = connecting.getNow();
                    bootstrap.option(ChannelOption.CONNECT_TIMEOUT_MILLIS, timeoutMillis); // of its moves
                }
                links.begin(Link.of(channel));
                LadderMove move =
                        rungs == null || internet == null ? null : move(bootstrap, internet, rungs, group, links);
                return new RdmaClient(links, group, shared == null, requestTimeoutNanos, move);
            } catch (Throwable failure) {
                if (shared == null) {
                    // Rungs that connected and were not used are still closing.
                    group.shutdownGracefully(0, ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS);
                }
                throw failure;
            }
        }

        private static @Nullable LadderMove move(
                Bootstrap bootstrap,
                InetSocketAddress address,
                LadderOptions options,
                RdmaEventLoopGroup group,
                Links links) {
            Duration every = options.moveUp();
            if (every == null) {
                return null;
            }
            LadderMove move = new LadderMove(group.next(), links, options, every, new LadderMove.Climb() {
                @Override
                public boolean canTry(List<String> rungs) {
                    return RdmaLadder.canTry(group, address, rungs);
                }

                @Override
                public Future<RdmaChannel> connect(List<String> rungs) {
                    return RdmaLadder.connectMessages(
                            bootstrap,
                            address,
                            new LadderOptions(
                                    rungs, options.hedgeDelay(), options.forgetAfter(), null, options.needs(), null));
                }
            });
            move.begin();
            return move;
        }

        private Serving serving(RdmaChannel channel, @Nullable Retries shares) {
            RdmaProvider carrier = Objects.requireNonNull(LoopGroup.providerOf(channel.eventLoop()));
            return new Serving(
                    Exchange.handlerOf(handler),
                    virtualThreads,
                    false,
                    new RequestCounters(carrier),
                    null,
                    null,
                    shares,
                    pendingBounds);
        }

        /**
         * Connects without waiting, on a virtual thread. The builder is read at once and may be changed afterwards.
         *
         * @param host a name or address
         * @param port 1 to 65535
         * @return the client; fails with what {@link #connect} throws. If it is cancelled, or completed by its owner in
         *     another way, {@code orTimeout} included, the attempt ends, and a client that is connected by then is
         *     closed
         */
        public CompletableFuture<RdmaClient> connectAsync(String host, int port) {
            Builder read = new Builder(this);
            Connecting connecting = new Connecting(read, host, port);
            connecting.thread.start();
            return connecting;
        }
    }

    /** A client that connects. Completing it in any other way ends the attempt. */
    private static final class Connecting extends LoopFuture<RdmaClient> {
        private final Builder how;
        private final String host;
        private final int port;
        private final Thread thread = Thread.ofVirtual().name("verbena-connect").unstarted(this::run);

        Connecting(Builder how, String host, int port) {
            this.how = how;
            this.host = host;
            this.port = port;
        }

        private void run() {
            RdmaClient client;
            try {
                ShortForm.checkAddress("connect to ", host, port, 1);
                client = how.connectNow(host, port);
            } catch (Throwable failure) {
                giveFailure(failure);
                return;
            }
            if (!give(client)) {
                client.closeAsync();
            }
        }

        @Override
        protected void stop() {
            thread.interrupt();
        }
    }
}
